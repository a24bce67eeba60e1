#pragma once

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/cuda/gpu_platform.h"

namespace fuse {

/// A driver with one device that is made of the CPU: the host's memory is its
/// memory, and a module's image is the text of its kernels, which the host's
/// compiler compiles and SimKernel runs. Everything has happened when a call
/// returns. For learning and for tests, never for speed.
const CudaApi& sim_api();

/// That device, ready for kernels: "cuda-sim:0". Lives for ever.
GpuPlatform& sim_platform();

/// What the simulated device says of its size: few, so that a block has several
/// shares of the work.
inline constexpr int sim_multiprocessors = 3;
inline constexpr int sim_blocks_each = 2;
inline constexpr int sim_capability = 90;

}  // namespace fuse
