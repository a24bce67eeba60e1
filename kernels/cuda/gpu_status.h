#pragma once

#include <string>
#include <vector>

#include "fusebook/cuda/cuda_api.h"

namespace fuse {

/// Why no GPU can be used.
enum class GpuAbsence {
  none,            ///< at least one can
  no_driver,       ///< no driver library, or the toolkit's empty stand-in
  driver_too_old,  ///< the driver does not serve CUDA 12
  no_device,       ///< a driver, but nothing it drives (code 100)
  driver_failed,   ///< the driver is there and fails
};

/// What one device says of itself.
struct GpuDevice {
  int ordinal = 0;
  std::string name;
  int capability = 0;  ///< 10 * major + minor: 90 for 9.0
  int multiprocessors = 0;
  int max_block_threads = 0;
  int l2_bytes = 0;
  long long memory_bytes = 0;
};

/// What a machine has in GPUs.
struct GpuStatus {
  GpuAbsence absence = GpuAbsence::none;
  /// One sentence that says what is wrong and what to do; empty when GPUs can
  /// be used.
  std::string problem;
  int driver_version = 0;  ///< as CUDA counts: 13000 for 13.0; 0: unknown
  std::vector<GpuDevice> devices;

  bool usable() const { return absence == GpuAbsence::none; }
};

/// Asks a driver for its devices. Makes no context on any. Never throws.
GpuStatus look_for_gpus(const CudaDriver& driver);

/// "13.0" for 13000.
std::string cuda_version_text(int version);

}  // namespace fuse
