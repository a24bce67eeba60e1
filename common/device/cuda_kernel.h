#pragma once

#include <array>
#include <memory>
#include <source_location>
#include <string>

#include "fusebook/device/device_registry.h"
#include "fusebook/support/undefined.h"

namespace fuse {

/// A kernel written in CUDA C++, compiled at run time for a GPU, or for the
/// simulated one. One that was moved from throws Error, which names what was
/// called.
class CudaKernel {
 public:
  /// Numbers of blocks, or of threads in a block.
  struct Size {
    unsigned x = 1;  ///< Along the fastest dimension.
    unsigned y = 1;  ///< Along the second.
    unsigned z = 1;  ///< Along the slowest.
  };

  /// `name` is an `extern "C" __global__` function of `text`. Throws Error, with
  /// the compiler's words, where the text is at fault, and what gpu_of throws.
  CudaKernel(const Device& device, const std::string& text,
             const std::string& name);

  /// Puts one launch on the device's stream. The arguments must be of exactly
  /// the types that the kernel takes. Throws Error when the device refuses.
  template <class... Arguments>
  void launch(Size grid, Size block, const Arguments&... arguments) const {
    static_cast<void>(module());
    std::array<const void*, sizeof...(Arguments)> addresses = {&arguments...};
    launch_with(grid, block, addresses.data());
  }

  /// Blocks of 256 threads that the device runs at the same time.
  unsigned resident_blocks() const { return module().resident_blocks(); }
  /// Registers, memory and threads that the compiler gave it.
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
