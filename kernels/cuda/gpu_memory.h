#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fusebook/cuda/gpu_context.h"

namespace fuse {

/// The current and past use of a device's memory.
struct GpuMemoryStatistics {
  std::int64_t bytes_in_use = 0;
  std::int64_t bytes_cached = 0;
  std::int64_t most_bytes_in_use = 0;
  std::int64_t device_allocations = 0;
  std::int64_t cache_hits = 0;
};

/// Size of the block for `bytes` bytes: a multiple of 256 bytes, above 4 KiB of
/// 4 KiB, above 256 KiB of 64 KiB.
std::size_t gpu_block_size(std::size_t bytes);

/// A caching allocator for the memory of one device. Allocating from the driver
/// takes microseconds and freeing waits for the device, so a released block is
/// kept and is the next one handed out for its size. That is safe without
/// waiting: its next user works on the same stream.
///
/// Blocks up to 256 KiB are cut out of slabs, so that thousands of small
/// tensors need only a few driver calls. Blocks start at multiples of 256 bytes
/// and, unlike those of the CPU, are not staggered: a GPU hashes addresses over
/// its memory channels, so equal offsets do not collide. Thread-safe.
class GpuMemory {
 public:
  explicit GpuMemory(GpuContext& context) : context_(context) {}
  /// Frees all memory of the device, even if still in use.
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Address of a block of `gpu_block_size(bytes)` bytes, uninitialised. If the
  /// device is full the cache is emptied first; if that does not help, throws
  /// Error saying how much was requested, is free and is in use. Also throws
  /// Error during a capture.
  cuda::Address allocate(std::size_t bytes);
  /// Takes back a block; `bytes` is the size that was requested.
  void release(cuda::Address block, std::size_t bytes) noexcept;

  /// Frees idle memory of the device; does nothing during a capture.
  void empty_cache() noexcept;
  GpuMemoryStatistics statistics() const;

 private:
  // One driver allocation: `count` blocks of `size` bytes.
  struct Slab {
    std::size_t size;
    std::size_t count;
    std::size_t in_use;
  };
  using Slabs = std::map<cuda::Address, Slab>;

  cuda::Address take_cached(std::size_t size);
  void add_slab(std::size_t size);
  cuda::Address ask_device(std::size_t size, std::size_t* count);
  void empty_locked() noexcept;
  [[noreturn]] void throw_full(std::size_t bytes, cuda::Result code);
  Slab& slab_of(cuda::Address block);

  GpuContext& context_;
  mutable std::mutex mutex_;
  Slabs slabs_;
  std::unordered_map<std::size_t, std::vector<cuda::Address>> free_;
  // Number of blocks in the next slab of each size.
  std::unordered_map<std::size_t, std::size_t> next_count_;
  GpuMemoryStatistics statistics_;
};

}  // namespace fuse
