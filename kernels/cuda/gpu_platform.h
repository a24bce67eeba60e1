#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fusebook/cuda/cuda_api.h"
#include "fusebook/cuda/gpu.h"
#include "fusebook/cuda/gpu_error.h"
#include "fusebook/cuda/gpu_status.h"
#include "fusebook/cuda/module_compiler.h"

namespace fuse {

/// A driver, what it drives, and what compiles for that: the real one
/// (`cuda_platform`), a simulator, or a test's.
class GpuPlatform {
 public:
  /// How long a device that was started stays: as long as somebody holds it, or
  /// as the platform.
  enum class Lifetime { while_used, for_ever };

  /// `name` is the word before the colon in "cuda:0"; the table of `driver`
  /// must outlive everything.
  GpuPlatform(std::string name, CudaDriver driver,
              std::shared_ptr<ModuleCompiler> compiler,
              Lifetime lifetime = Lifetime::while_used);
  GpuPlatform(const GpuPlatform&) = delete;
  GpuPlatform& operator=(const GpuPlatform&) = delete;

  const std::string& name() const { return name_; }
  /// What there is. Asks the driver the first time, and again as long as no
  /// device can be used. Never throws.
  GpuStatus status();

  /// The device, started the first time and shared from then on. Throws NoGpu
  /// when there is none at all, Error when there is no such device or it
  /// cannot be started. Safe to call from any thread.
  std::shared_ptr<Gpu> gpu(int ordinal = 0);

 private:
  const GpuStatus& status_locked();

  const std::string name_;
  const CudaDriver driver_;
  const std::shared_ptr<ModuleCompiler> compiler_;
  const Lifetime lifetime_;
  std::mutex mutex_;
  bool asked_ = false;
  GpuStatus status_;
  std::vector<std::weak_ptr<Gpu>> gpus_;
  std::vector<std::shared_ptr<Gpu>> held_;
};

}  // namespace fuse
