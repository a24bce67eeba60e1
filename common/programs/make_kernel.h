#pragma once

#include <memory>

#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/programs/compile_options.h"
#include "fusebook/runtime/kernel.h"

namespace fuse {

/// The kernel of a plan for lists on a device; those in the memory of a GPU leave
/// no choice. Without a compiler it is interpreted, which is said once in a
/// process. Throws Error when a kernel cannot be compiled.
std::shared_ptr<Kernel> make_kernel(const Plan& plan, Backend backend,
                                    const Device& device);

}  // namespace fuse
