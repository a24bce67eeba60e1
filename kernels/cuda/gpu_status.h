#pragma once

#include <string>
#include <vector>

#include "fusebook/cuda/cuda_api.h"

namespace fuse {

/// Why no GPU can be used.
enum class GpuAbsence {
  none,            ///< at least one is usable
  no_driver,       ///< no driver library, or the toolkit's stub
  driver_too_old,  ///< the driver does not support CUDA 12
  no_device,       ///< a driver, but no devices (code 100)
  driver_failed,   ///< there is a driver, but it fails
};

/// The properties of one device.
struct GpuDevice {
  int ordinal = 0;
  std::string name;
  int capability = 0;  ///< 10 * major + minor: 90 for 9.0
  int multiprocessors = 0;
  int max_block_threads = 0;
  int l2_bytes = 0;
  long long memory_bytes = 0;
};

/// The GPUs of a machine.
struct GpuStatus {
  GpuAbsence absence = GpuAbsence::none;
  /// One sentence saying what is wrong and what to do; empty if GPUs are
  /// usable.
  std::string problem;
  int driver_version = 0;  ///< in CUDA's format: 13000 for 13.0; 0 if unknown
  std::vector<GpuDevice> devices;

  bool usable() const { return absence == GpuAbsence::none; }
};

/// Asks a driver for its devices. Creates no contexts. Never throws.
GpuStatus look_for_gpus(const CudaDriver& driver);

/// "13.0" for 13000.
std::string cuda_version_text(int version);

}  // namespace fuse
