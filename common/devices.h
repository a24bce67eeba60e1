#pragma once

#include <memory>
#include <string>

#include "compute_device.h"
#include "gpu.h"

namespace fuse {

/// A GPU in use, or the simulated one. Throws NoGpu when there is none at all,
/// Error when it is another one that is missing or it cannot be started, or for
/// the CPU.
std::shared_ptr<Gpu> gpu_of(const Device& device);

/// The first GPU of this machine if it can be used and something compiles for
/// it; else the CPU, with the reason in `why`.
Device best_device(std::string* why);

}  // namespace fuse
