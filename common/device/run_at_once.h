#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// Runs a program over lists on one device immediately, even while a function
/// is being recorded: for the library's own work on tensors. Not counted, not
/// traced. Kernels and tables are cached. Numbers must be arguments; pending
/// work on the tensors is not flushed.
void run_at_once(const Program& program);

}  // namespace fuse
