#include "fusebook/cuda_sim/gpu_sim_device.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

namespace fuse {
namespace {

std::mutex device_mutex;
SimDevice device_now;

}  // namespace

SimDevice sim_device() {
  const std::lock_guard lock(device_mutex);
  return device_now;
}

void set_sim_device(const SimDevice& device) {
  const std::lock_guard lock(device_mutex);
  device_now = device;
}

namespace cuda_sim {

cuda::Result init(unsigned /*flags*/) { return cuda::success; }

cuda::Result driver_get_version(int* version) {
  *version = 13000;
  return cuda::success;
}

cuda::Result device_get_count(int* count) {
  *count = 1;
  return cuda::success;
}

cuda::Result device_get(cuda::Device* device, int ordinal) {
  if (ordinal != 0) return cuda::invalid_device;
  *device = 0;
  return cuda::success;
}

cuda::Result device_get_name(char* name, int length, cuda::Device /*device*/) {
  const std::string text = "CUDA simulator";
  const std::size_t kept = std::min(text.size(), std::size_t(length) - 1);
  std::memcpy(name, text.data(), kept);
  name[kept] = '\0';
  return cuda::success;
}

cuda::Result device_get_attribute(int* value, int attribute,
                                  cuda::Device /*device*/) {
  switch (attribute) {
    case cuda::attribute_max_threads_per_block:
      *value = 1024;
      break;
    case cuda::attribute_multiprocessor_count:
      *value = sim_device().multiprocessors;
      break;
    case cuda::attribute_capability_major:
      *value = sim_capability / 10;
      break;
    case cuda::attribute_capability_minor:
      *value = sim_capability % 10;
      break;
    case cuda::attribute_cooperative_launch:
      *value = sim_device().cooperative_launch ? 1 : 0;
      break;
    default:
      *value = 0;
  }
  return cuda::success;
}

cuda::Result occupancy_blocks(int* blocks, cuda::Function /*function*/,
                              int /*threads*/, std::size_t /*shared_bytes*/) {
  *blocks = sim_device().blocks_each;
  return cuda::success;
}

}  // namespace cuda_sim
}  // namespace fuse
