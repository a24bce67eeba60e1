#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_api.h"
#include "gpu.h"
#include "gpu_error.h"
#include "gpu_status.h"
#include "module_compiler.h"

namespace fuse {

/// A driver, what it drives, and what compiles for that: the real one
/// (`cuda_platform`), a simulator, or a test's.
class GpuPlatform {
 public:
  /// `name` is the word before the colon in "cuda:0"; the table of `driver`
  /// must outlive everything.
  GpuPlatform(std::string name, CudaDriver driver,
              std::shared_ptr<ModuleCompiler> compiler);
  GpuPlatform(const GpuPlatform&) = delete;
  GpuPlatform& operator=(const GpuPlatform&) = delete;

  const std::string& name() const { return name_; }
  /// What there is. Asks the driver the first time, and again as long as no
  /// device can be used. Never throws.
  GpuStatus status();

  /// The device, started the first time and shared from then on, for as long
  /// as somebody holds it; `cuda_platform` holds its own for ever. Throws NoGpu
  /// when there is none at all, Error when there is no such device or it
  /// cannot be started. Safe to call from any thread.
  std::shared_ptr<Gpu> gpu(int ordinal = 0);

 private:
  friend GpuPlatform& cuda_platform();
  const GpuStatus& status_locked();

  const std::string name_;
  const CudaDriver driver_;
  const std::shared_ptr<ModuleCompiler> compiler_;
  std::mutex mutex_;
  bool asked_ = false;
  bool holds_gpus_ = false;
  GpuStatus status_;
  std::vector<std::weak_ptr<Gpu>> gpus_;
  std::vector<std::shared_ptr<Gpu>> held_;
};

/// The GPUs of this machine. The driver's library is opened the first time.
/// Lives for ever, and so do its devices: tensors and kernels with static
/// lifetime may go after everything else.
GpuPlatform& cuda_platform();

}  // namespace fuse
