#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// The current value of a number shared by all tensors of a group, computed on
/// the host from scalars and numbers in memory; waits for the GPU if they are
/// there.
Number number_of(const Program& program, ValueId value);

/// True for a value that a reduction goes into: it is known when a kernel has run.
bool needs_reduction(const Program& program, ValueId value);

}  // namespace fuse
