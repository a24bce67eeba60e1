#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// What a value that all tensors of a group share is now, computed on the host
/// from scalars and numbers in memory; a wait for the GPU where these lie there.
Number number_of(const Program& program, ValueId value);

}  // namespace fuse
