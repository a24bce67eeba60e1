#pragma once

#include <memory>

#include "fusebook/cuda/gpu.h"
#include "fusebook/device/backend.h"

namespace fuse {

/// NVIDIA GPUs, through the CUDA driver and NVRTC.
std::unique_ptr<DeviceBackend> make_cuda_backend();

/// The simulated GPU. Its kernels access host memory as their own.
std::unique_ptr<DeviceBackend> make_simulator_backend();

/// The GPU behind a device, for features that only CUDA has; nullptr if CUDA
/// does not drive it. Throws like `gpu_of`.
std::shared_ptr<Gpu> find_gpu(const Device& device);

}  // namespace fuse
