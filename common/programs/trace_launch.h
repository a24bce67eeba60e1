#pragma once

#include "fusebook/programs/compiled_program.h"

namespace fuse {

/// Adds a launch to the LaunchTrace of this thread, if there is one.
void trace_launch(const CompiledProgram& compiled);

}  // namespace fuse
