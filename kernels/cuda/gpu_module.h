#pragma once

#include <memory>
#include <string>

#include "fusebook/cuda/gpu_context.h"
#include "fusebook/cuda/module_compiler.h"

namespace fuse {

/// A kernel that was loaded onto a device.
class GpuModule {
 public:
  /// Throws Error when the device does not take the code.
  GpuModule(GpuContext& context, const ModuleImage& image);
  ~GpuModule();
  GpuModule(const GpuModule&) = delete;
  GpuModule& operator=(const GpuModule&) = delete;

  cuda::Function function() const { return function_; }
  /// Blocks of `gpu_block` threads that the device runs at the same time.
  /// Throws Error when it cannot run one.
  unsigned resident_blocks() const;
  /// Registers and shared memory as the device says, spills as the compiler
  /// said.
  const GpuResources& resources() const { return resources_; }

 private:
  GpuModule(GpuContext& context, const GpuResources& resources)
      : context_(context), resources_(resources) {}
  void ask_resources();

  GpuContext& context_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
  unsigned resident_blocks_ = 0;
  GpuResources resources_;
};

}  // namespace fuse
