#pragma once

#include "fusebook/cuda/gpu_platform.h"

namespace fuse {

/// The GPUs of this machine. The driver's library is opened on first use. Never
/// destroyed, nor are its devices: tensors and kernels with static lifetime may
/// be destroyed last.
GpuPlatform& cuda_platform();

}  // namespace fuse
