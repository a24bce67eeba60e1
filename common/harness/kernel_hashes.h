#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Notes in the record of the recipe that is running, if one is asked for, a
/// hash of what is generated for a GPU from `plan`. It is the same on every
/// device, and so tells whether a sample of a GPU shows the kernels that the
/// recipe has now.
void record_kernel(const Plan& plan);

}  // namespace fuse
