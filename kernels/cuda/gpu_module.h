#pragma once

#include <memory>
#include <string>

#include "fusebook/cuda/gpu_context.h"
#include "fusebook/cuda/module_compiler.h"

namespace fuse {

/// A kernel loaded onto a device.
class GpuModule {
 public:
  /// Throws Error if the device rejects the code.
  GpuModule(GpuContext& context, const ModuleImage& image);
  ~GpuModule();
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;

  cuda::Function function() const { return function_; }
  /// Number of blocks of `gpu_block` threads that can run on the device at
  /// once. Throws Error if not even one can.
  unsigned resident_blocks() const;
  /// True if blocks of the kernel may wait for each other, where as many of them
  /// are launched together.
  bool launches_cooperatively() const { return cooperative_; }
  /// Registers and shared memory as reported by the device, spills as reported
  /// by the compiler.
  const GpuResources& resources() const { return resources_; }

 private:
  GpuModule(GpuContext& context, const GpuResources& resources)
      : context_(context), resources_(resources) {}
  void ask_blocks();
  void ask_resources();

  GpuContext& context_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
  unsigned resident_blocks_ = 0;
  bool cooperative_ = false;
  GpuResources resources_;
};

}  // namespace fuse
