#pragma once

#include <memory>
#include <string>

#include "fusebook/cuda/gpu.h"
#include "fusebook/device/device.h"

namespace fuse {

/// A GPU in use, or the simulated one. Throws NoGpu when there is none at all,
/// Error when it is another one that is missing or it cannot be started, or for
/// the CPU.
std::shared_ptr<Gpu> gpu_of(const Device& device);

/// Throws unless tensors can lie and kernels run there: as gpu_of, or
/// DeviceTooOld for a GPU that no compiler here knows.
void require_device(const Device& device);

/// The default device if it is a GPU, else the simulated one.
Device gpu_or_simulator();

/// Its name with that of the driver, "NVIDIA H200, CUDA 13.0"; of the CPU its
/// model.
std::string device_model(const Device& device);

/// What kernels are compiled for, "sm_90"; empty but for a real GPU.
std::string device_architecture(const Device& device);

/// The first GPU of this machine if it can be used and something compiles for
/// it; else the CPU, with the reason in `why`.
Device best_device(std::string* why);

}  // namespace fuse
