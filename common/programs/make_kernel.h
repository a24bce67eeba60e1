#pragma once

#include <memory>

#include "fusebook/device/device.h"
#include "fusebook/ir/plan.h"
#include "fusebook/programs/compile_options.h"
#include "fusebook/runtime/kernel.h"

namespace fuse {

/// Makes the kernel of a plan for lists on a device; for lists on a GPU,
/// `backend` is ignored. Without a compiler the kernel is interpreted, with one
/// note per process. Throws Error if a kernel cannot be compiled.
std::shared_ptr<Kernel> make_kernel(const Plan& plan, Backend backend,
                                    const Device& device);

}  // namespace fuse
