#pragma once

#include <cstdlib>

#include "fusebook/device/device.h"

namespace testing {

/// The simulated GPU, or the one that FUSEBOOK_TEST_DEVICE names.
inline fuse::Device tested_device() {
  const char* const name = std::getenv("FUSEBOOK_TEST_DEVICE");
  return fuse::parse_device(name == nullptr ? "cuda-sim" : name);
}

/// The default device for a scope; then it is the CPU again.
struct DefaultDevice {
  explicit DefaultDevice(const fuse::Device& device) {
    fuse::set_default_device(device);
  }
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;
  ~DefaultDevice() { fuse::set_default_device(fuse::cpu_device); }
};

}  // namespace testing
