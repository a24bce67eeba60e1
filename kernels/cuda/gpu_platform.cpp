#include "fusebook/cuda/gpu_platform.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace fuse {
namespace {

std::string list_devices(const std::string& platform, std::size_t count) {
  if (count == 1) return "the only one is " + platform + ":0";
  return fmt::format("there are {}, from {}:0 to {}:{}", count, platform,
                     platform, count - 1);
}

}  // namespace

GpuPlatform::GpuPlatform(std::string name, CudaDriver driver,
                         std::shared_ptr<ModuleCompiler> compiler,
                         Lifetime lifetime)
    : name_(std::move(name)),
      driver_(std::move(driver)),
      compiler_(std::move(compiler)),
      lifetime_(lifetime) {}

const GpuStatus& GpuPlatform::status_locked() {
  if (asked_ && status_.usable()) return status_;
  status_ = look_for_gpus(driver_);
  asked_ = true;
  return status_;
}

GpuStatus GpuPlatform::status() {
  const std::lock_guard lock(mutex_);
  return status_locked();
}

std::shared_ptr<Gpu> GpuPlatform::gpu(int ordinal) {
  const std::lock_guard lock(mutex_);
  const GpuStatus& found = status_locked();
  if (!found.usable()) throw NoGpu(found.problem);
  const std::size_t count = found.devices.size();
  if (ordinal < 0 || std::size_t(ordinal) >= count) {
    throw Error(fmt::format("no such device: {}:{}: {}", name_, ordinal,
                            list_devices(name_, count)));
  }
  gpus_.resize(count);
  std::weak_ptr<Gpu>& known = gpus_[ordinal];
  if (auto gpu = known.lock()) return gpu;
  auto gpu = std::make_shared<Gpu>(*driver_.api, name_, found.devices[ordinal],
                                   compiler_);
  known = gpu;
  if (lifetime_ == Lifetime::for_ever) held_.push_back(gpu);
  return gpu;
}

}  // namespace fuse
