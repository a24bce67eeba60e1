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

/// A driver, its devices, and the compiler for them: the real one
/// (`cuda_platform`), a simulator, or one made by a test.
class GpuPlatform {
 public:
  /// How long a started device stays alive: while it is referenced, or as long
  /// as the platform.
  enum class Lifetime { while_used, for_ever };

  /// `name` is the part before the colon in "cuda:0"; the table of `driver`
  /// must outlive everything.
  GpuPlatform(std::string name, CudaDriver driver,
              std::shared_ptr<ModuleCompiler> compiler,
              Lifetime lifetime = Lifetime::while_used);
  GpuPlatform(const GpuPlatform&) = delete;
  GpuPlatform& operator=(const GpuPlatform&) = delete;

  const std::string& name() const { return name_; }
  /// The available devices. Asks the driver the first time, and again while no
  /// device is usable. Never throws.
  GpuStatus status();

  /// The device, started on first use and shared from then on. Throws NoGpu if
  /// there is none at all, Error if there is no such device or it cannot be
  /// started. Thread-safe.
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
