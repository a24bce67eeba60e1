#pragma once

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/cuda/gpu_platform.h"

namespace fuse {

/// A driver with one device, implemented on the CPU: the host's memory is its
/// memory, and a module's image is the text of its kernels, which the host's
/// compiler compiles and SimKernel runs. All work is complete when a call
/// returns. For learning and testing, not for speed.
const CudaApi& sim_api();

/// That device, ready for kernels: "cuda-sim:0". Never destroyed.
GpuPlatform& sim_platform();

}  // namespace fuse
