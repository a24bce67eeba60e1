#pragma once

#include "fusebook/cuda/gpu_platform.h"

namespace fuse {

/// The GPUs of this machine. The driver's library is opened the first time.
/// Lives for ever, and so do its devices: tensors and kernels with static
/// lifetime may go after everything else.
GpuPlatform& cuda_platform();

}  // namespace fuse
