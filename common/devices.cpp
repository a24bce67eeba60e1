#include "devices.h"

#include "error.h"
#include "gpu_platform.h"
#include "gpu_sim.h"
#include "nvrtc_api.h"

namespace fuse {

std::shared_ptr<Gpu> gpu_of(const Device& device) {
  if (device.kind == Device::Kind::cuda_sim) return sim_platform().gpu(0);
  if (device.kind == Device::Kind::cuda) {
    return cuda_platform().gpu(device.index);
  }
  throw Error("the CPU was asked for its GPU");
}

Device best_device(std::string* why) {
  const GpuStatus status = cuda_platform().status();
  if (!status.usable()) {
    *why = status.problem;
    return {};
  }
  try {
    static_cast<void>(load_nvrtc());
  } catch (const NoGpu& error) {
    *why = error.what();
    return {};
  }
  return {Device::Kind::cuda, 0};
}

}  // namespace fuse
