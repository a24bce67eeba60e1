#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "fusebook/cuda/gpu_context.h"
#include "fusebook/cuda/gpu_memory.h"
#include "fusebook/cuda/gpu_module.h"
#include "fusebook/cuda/gpu_staging.h"
#include "fusebook/cuda/module_compiler.h"
#include "fusebook/cuda/stream_order.h"

namespace fuse {

/// A device in use: context, memory, uploads and loaded kernels. Everything
/// that uses it (blocks, kernels, events, graphs) keeps it alive.
class Gpu {
 public:
  /// Throws Error if the device cannot be started.
  Gpu(const CudaApi& api, const std::string& platform, const GpuDevice& device,
      std::shared_ptr<ModuleCompiler> compiler);

  GpuContext& context() { return context_; }
  GpuMemory& memory() { return memory_; }
  GpuStaging& staging() { return staging_; }
  StreamOrder& order() { return order_; }
  /// "cuda:0".
  const std::string& label() const { return context_.label(); }
  const GpuDevice& device() const { return context_.device(); }

  /// The kernel of `source`, compiled and loaded on first use. Throws like
  /// ModuleCompiler::compile and GpuModule.
  std::shared_ptr<GpuModule> module(const std::string& source);
  /// Throws NoGpu (DeviceTooOld) if nothing compiles for this device.
  void check_compiler() { compiler_->check(device().capability); }
  /// Unloads kernels that are not in use; does nothing during a capture. For
  /// measurements and tests.
  void forget_modules();

  /// Total bytes passed to `copy_to_device` and `copy_to_host`, excluding data
  /// of kernel launches (tables, scalars).
  struct Transfers {
    std::int64_t to_device = 0;
    std::int64_t to_host = 0;
  };
  Transfers transfers() const { return {to_device_, to_host_}; }

  // -- copies, in the order of the stream; `bytes` may be 0

  /// Copies from host memory, which may be changed as soon as this returns.
  void copy_to_device(void* to, const void* from, std::size_t bytes);
  /// Copies to host memory; the copy is complete when this returns.
  void copy_to_host(void* to, const void* from, std::size_t bytes);
  /// Copies within the device, asynchronously.
  void copy_on_device(void* to, const void* from, std::size_t bytes);
  /// Sets every byte, asynchronously.
  void fill_bytes(void* to, unsigned char value, std::size_t bytes);
  /// Waits until all issued work has run.
  void synchronize() { context_.synchronize(); }

 private:
  std::shared_ptr<GpuModule> find_module(const std::string& source);

  GpuContext context_;
  GpuMemory memory_;
  GpuStaging staging_;
  StreamOrder order_;
  std::shared_ptr<ModuleCompiler> compiler_;
  std::mutex compiling_;
  std::mutex mutex_;  // protects the known modules
  std::unordered_map<std::string, std::shared_ptr<GpuModule>> modules_;
  std::atomic<std::int64_t> to_device_ = 0;
  std::atomic<std::int64_t> to_host_ = 0;
};

/// Memory on a device, released on destruction; empty by default.
class GpuBlock {
 public:
  GpuBlock() = default;
  /// At least `bytes` bytes, aligned to 256. Throws like GpuMemory::allocate.
  GpuBlock(std::shared_ptr<Gpu> gpu, std::size_t bytes);
  ~GpuBlock() { reset(); }
  GpuBlock(GpuBlock&& other) noexcept { swap(other); }
  GpuBlock& operator=(GpuBlock&& other) noexcept {
    swap(other);
    return *this;
  }

  /// An address on the device, which the host must not dereference.
  void* data() const;
  cuda::Address address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void reset() noexcept;
  void swap(GpuBlock& other) noexcept;

  std::shared_ptr<Gpu> gpu_;
  cuda::Address address_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace fuse
