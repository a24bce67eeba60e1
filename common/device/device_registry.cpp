#include "fusebook/device/device_registry.h"

#include "fusebook/device/backend.h"
#include "fusebook/device/gpu_backend.h"
#include "fusebook/support/error.h"

namespace fuse {

std::shared_ptr<Gpu> gpu_of(const Device& device) {
  if (auto gpu = find_gpu(device)) return gpu;
  throw Error("'" + to_string(device) +
              "' is not a CUDA GPU; use cuda, cuda:N or cuda-sim");
}

void require_device(const Device& device) {
  backend_of(device).require(device.index);
}

Device gpu_or_simulator() {
  const Device chosen = default_device();
  return chosen.is_cpu() ? Device{Device::Kind::cuda_sim, 0} : chosen;
}

std::string device_model(const Device& device) {
  return backend_of(device).model(device.index);
}

std::string device_architecture(const Device& device) {
  return backend_of(device).architecture(device.index);
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
