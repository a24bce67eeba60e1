#include "bench_gpu/device_memory.h"

#include "fusebook/device/allocator.h"
#include "fusebook/device/device_registry.h"
#include "fusebook/support/available_memory.h"
#include "fusebook/support/error.h"

namespace fuse::bench {

void require_device_memory(std::int64_t bytes) {
  const Device device = default_device();
  if (device.kind == Device::Kind::cuda_sim) return require_memory(bytes);
  const std::int64_t there = gpu_of(device)->device().memory_bytes;
  // The driver keeps some.
  if (bytes <= there / 100 * 95) return;
  throw Error("it needs " + format_bytes(bytes) + " of device memory; " +
              to_string(device) + " has " + format_bytes(there));
}

}  // namespace fuse::bench
