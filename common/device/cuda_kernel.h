#pragma once

#include <array>
#include <memory>
#include <source_location>
#include <string>

#include "fusebook/device/device_registry.h"
#include "fusebook/support/undefined.h"

namespace fuse {

/// A kernel written in CUDA C++, compiled at run time for a real or simulated
/// GPU. A moved-from kernel throws Error naming what was called.
class CudaKernel {
 public:
  /// Number of blocks, or of threads in a block.
  struct Size {
    unsigned x = 1;  ///< Along the fastest dimension.
    unsigned y = 1;  ///< Along the second.
    unsigned z = 1;  ///< Along the slowest.
  };

  /// `name` is an `extern "C" __global__` function of `text`. Throws Error with
  /// the compiler's output if the text is invalid, and whatever gpu_of throws.
  CudaKernel(const Device& device, const std::string& text,
             const std::string& name);

  /// Enqueues a launch on the device's stream. The arguments must have exactly
  /// the types of the kernel's parameters. Throws Error if the device refuses.
  template <class... Arguments>
  void launch(Size grid, Size block, const Arguments&... arguments) const {
    static_cast<void>(module());
    std::array<const void*, sizeof...(Arguments)> addresses = {
        static_cast<const void*>(&arguments)...};
    launch_with(grid, block, addresses.data());
  }

  /// Number of blocks of 256 threads that can run on the device at once.
  unsigned resident_blocks() const { return module().resident_blocks(); }
  /// Registers, memory and threads that the compiler assigned.
  const GpuResources& resources() const { return module().resources(); }

 private:
  const GpuModule& module(
      std::source_location call = std::source_location::current()) const {
    if (module_ == nullptr) refuse_moved_from(call, "the kernel");
    return *module_;
  }
  void launch_with(Size grid, Size block, const void* const* arguments) const;

  std::string name_;
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<GpuModule> module_;
};

}  // namespace fuse
