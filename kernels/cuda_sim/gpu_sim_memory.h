#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "fusebook/cuda/cuda_api.h"

namespace fuse {

// The memory that programs have allocated on the simulated GPU.
class SimMemory {
 public:
  // Out of memory if the machine has less than that free.
  cuda::Result allocate(cuda::Address* address, std::size_t bytes);
  cuda::Result release(cuda::Address address);

  // True if all bytes are within one block.
  bool holds(cuda::Address address, std::size_t bytes);

  static std::size_t free_bytes();
  static std::size_t total_bytes();

 private:
  std::mutex mutex_;
  std::map<cuda::Address, std::size_t> blocks_;
};

SimMemory& sim_memory();

}  // namespace fuse
