#pragma once

#include <vector>

#include "fusebook/cuda_sim/gpu_sim.h"
#include "fusebook/cuda_sim/gpu_sim_device.h"

namespace testing {

/// Another simulated GPU while this lives, for functions that are compiled
/// meanwhile.
class OtherSimDevice {
 public:
  explicit OtherSimDevice(const fuse::SimDevice& device) { become(device); }
  ~OtherSimDevice() { become({}); }
  OtherSimDevice(const OtherSimDevice&) = delete;
  OtherSimDevice& operator=(const OtherSimDevice&) = delete;

 private:
  static void become(const fuse::SimDevice& device) {
    fuse::set_sim_device(device);
    fuse::sim_platform().gpu()->forget_modules();
  }
};

/// Room for one block, for two, for many, and one that starts each block when it
/// likes.
inline const std::vector<fuse::SimDevice>& odd_sim_devices() {
  static const std::vector<fuse::SimDevice> all = {
      {.multiprocessors = 1, .blocks_each = 1},
      {.multiprocessors = 2, .blocks_each = 1},
      {.multiprocessors = 7, .blocks_each = 5},
      {.cooperative_launch = false}};
  return all;
}

}  // namespace testing
