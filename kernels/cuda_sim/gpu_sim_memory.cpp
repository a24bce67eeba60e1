#include "fusebook/cuda_sim/gpu_sim_memory.h"

#include <sys/sysinfo.h>

#include <cstdlib>

namespace fuse {
namespace {

using cuda::Address;
using cuda::Result;

struct sysinfo machine() {
  struct sysinfo now = {};
  sysinfo(&now);
  return now;
}

}  // namespace

Result SimMemory::allocate(Address* address, std::size_t bytes) {
  if (bytes == 0) return cuda::invalid_value;
  if (bytes > free_bytes()) return cuda::out_of_memory;
  void* const block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (block == nullptr) return cuda::out_of_memory;
  *address = reinterpret_cast<Address>(block);
  const std::lock_guard lock(mutex_);
  blocks_[*address] = bytes;
  return cuda::success;
}

Result SimMemory::release(Address address) {
  const std::lock_guard lock(mutex_);
  if (blocks_.erase(address) == 0) return cuda::invalid_value;
  std::free(reinterpret_cast<void*>(address));
  return cuda::success;
}

bool SimMemory::holds(Address address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

std::size_t SimMemory::free_bytes() {
  const struct sysinfo now = machine();
  return now.freeram * now.mem_unit;
}

std::size_t SimMemory::total_bytes() {
  const struct sysinfo now = machine();
  return now.totalram * now.mem_unit;
}

SimMemory& sim_memory() {
  static auto* const all = new SimMemory;  // outlives every static object
  return *all;
}

}  // namespace fuse
