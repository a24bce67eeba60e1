#pragma once

#include <array>
#include <memory>
#include <string>

#include "devices.h"

namespace fuse {

/// A kernel written in CUDA C++, compiled at run time for a GPU, or for the
/// simulated one.
class CudaKernel {
 public:
  /// Numbers of blocks, or of threads in a block.
  struct Size {
    unsigned x = 1;
    unsigned y = 1;
    unsigned z = 1;
  };

  /// `name` is an `extern "C" __global__` function of `text`. Throws Error, with
  /// the compiler's words, where the text is at fault, and what gpu_of throws.
  CudaKernel(const Device& device, const std::string& text,
             const std::string& name);

  /// Puts one launch on the device's stream. The arguments must be of exactly
  /// the types that the kernel takes. Throws Error when the device refuses.
  template <class... Arguments>
  void launch(Size grid, Size block, const Arguments&... arguments) const {
    std::array<const void*, sizeof...(Arguments)> addresses = {&arguments...};
    launch_with(grid, block, addresses.data());
  }

  /// Blocks of 256 threads that the device runs at the same time.
  unsigned resident_blocks() const { return module_->resident_blocks(); }
  const GpuResources& resources() const { return module_->resources(); }

 private:
  void launch_with(Size grid, Size block, const void* const* arguments) const;

  std::string name_;
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<GpuModule> module_;
};

}  // namespace fuse
