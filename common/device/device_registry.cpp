#include "fusebook/device/device_registry.h"

#include "fusebook/cuda/gpu_platform.h"
#include "fusebook/cuda/gpu_status.h"
#include "fusebook/cuda_sim/gpu_sim.h"
#include "fusebook/nvrtc/cuda_platform.h"
#include "fusebook/support/error.h"
#include "fusebook/support/machine.h"

namespace fuse {

std::shared_ptr<Gpu> gpu_of(const Device& device) {
  if (device.kind == Device::Kind::cuda_sim) return sim_platform().gpu(0);
  if (device.kind == Device::Kind::cuda) {
    return cuda_platform().gpu(device.index);
  }
  throw Error("the CPU was asked for its GPU");
}

void require_device(const Device& device) {
  if (!device.is_cpu()) gpu_of(device)->check_compiler();
}

Device gpu_or_simulator() {
  const Device chosen = default_device();
  return chosen.is_cpu() ? Device{Device::Kind::cuda_sim, 0} : chosen;
}

std::string device_model(const Device& device) {
  if (device.is_cpu()) return cpu_name();
  if (device.kind == Device::Kind::cuda_sim) {
    return "CUDA simulator on " + cpu_name();
  }
  return gpu_of(device)->device().name + ", CUDA " +
         cuda_version_text(cuda_platform().status().driver_version);
}

std::string device_architecture(const Device& device) {
  if (device.kind != Device::Kind::cuda) return "";
  return "sm_" + std::to_string(gpu_of(device)->device().capability);
}

Device best_device(std::string* why) {
  const Device first = {Device::Kind::cuda, 0};
  try {
    require_device(first);
    return first;
  } catch (const Error& error) {
    *why = error.what();
    return cpu_device;
  }
}

}  // namespace fuse
