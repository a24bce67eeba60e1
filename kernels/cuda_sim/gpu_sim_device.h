#pragma once

#include <cstddef>
#include <cstdint>

#include "fusebook/cuda/cuda_types.h"

namespace fuse {

/// What the simulated device is like. It is small, so that a block gets several
/// shares of the work.
struct SimDevice {
  int multiprocessors = 3;
  int blocks_each = 2;  ///< that a multiprocessor holds at once
  bool cooperative_launch = true;

  std::int64_t resident_blocks() const {
    return std::int64_t(multiprocessors) * blocks_each;
  }
};

SimDevice sim_device();

/// Makes it another device, for kernels that are loaded from now on. Those that
/// were loaded before believe what it was.
void set_sim_device(const SimDevice& device);

inline constexpr int sim_capability = 90;

// The driver's calls that ask about the device.
namespace cuda_sim {

cuda::Result init(unsigned flags);
cuda::Result driver_get_version(int* version);
cuda::Result device_get_count(int* count);
cuda::Result device_get(cuda::Device* device, int ordinal);
cuda::Result device_get_name(char* name, int length, cuda::Device device);
cuda::Result device_get_attribute(int* value, int attribute,
                                  cuda::Device device);
cuda::Result occupancy_blocks(int* blocks, cuda::Function function, int threads,
                              std::size_t shared_bytes);

}  // namespace cuda_sim
}  // namespace fuse
