#pragma once

#include <memory>
#include <string>

#include "fusebook/cuda/gpu.h"
#include "fusebook/device/device.h"

namespace fuse {

/// A GPU in use, or the simulated one. Throws NoGpu if there is none at all;
/// Error if this one is missing or cannot be started, or for the CPU.
std::shared_ptr<Gpu> gpu_of(const Device& device);

/// Throws unless the device can hold tensors and run kernels: like gpu_of, or
/// DeviceTooOld for a GPU that no compiler here supports.
void require_device(const Device& device);

/// The default device if it is a GPU, else the simulated one.
Device gpu_or_simulator();

/// The name of the device and its driver, "NVIDIA H200, CUDA 13.0"; for the CPU
/// its model.
std::string device_model(const Device& device);

/// The architecture kernels are compiled for, "sm_90"; empty except for a real
/// GPU.
std::string device_architecture(const Device& device);

/// The first GPU of this machine if it is usable and kernels can be compiled
/// for it; else the CPU, with the reason in `why`.
Device best_device(std::string* why);

}  // namespace fuse
