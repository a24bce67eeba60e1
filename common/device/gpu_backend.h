#pragma once

#include <memory>

#include "fusebook/cuda/gpu.h"
#include "fusebook/device/backend.h"

namespace fuse {

/// NVIDIA GPUs, through the CUDA driver and NVRTC.
std::unique_ptr<DeviceBackend> make_cuda_backend();

/// The simulated GPU. Its kernels reach the host's memory as if it were its own.
std::unique_ptr<DeviceBackend> make_simulator_backend();

/// The GPU behind a device, for what CUDA alone has; nullptr when CUDA does not
/// drive it. Throws as `gpu_of`.
std::shared_ptr<Gpu> find_gpu(const Device& device);

}  // namespace fuse
