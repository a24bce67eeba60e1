#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fusebook/cuda/gpu_context.h"

namespace fuse {

/// What the memory of a device holds and has done so far.
struct GpuMemoryStatistics {
  std::int64_t bytes_in_use = 0;
  std::int64_t bytes_cached = 0;
  std::int64_t most_bytes_in_use = 0;
  std::int64_t device_allocations = 0;
  std::int64_t cache_hits = 0;
};

/// Size of the block that holds `bytes` bytes: a multiple of 256 bytes, above
/// 4 KiB of 4 KiB, above 256 KiB of 64 KiB.
std::size_t gpu_block_size(std::size_t bytes);

/// A caching allocator for the memory of one device. Asking the driver for
/// memory takes microseconds, giving it back waits for the device; so a block
/// that was released is kept and is the next one handed out for its size. That
/// is safe at once, without waiting: whoever gets it works on the same stream.
///
/// Blocks up to 256 KiB are cut out of slabs, so that thousands of small
/// tensors need a few calls. Blocks start at multiples of 256 bytes and are not
/// staggered as those of the CPU are: a GPU spreads addresses over its memory
/// channels by a hash, so equal offsets do not meet in one place.
/// Safe to call from any thread.
class GpuMemory {
 public:
  explicit GpuMemory(GpuContext& context) : context_(context) {}
  /// Gives everything back to the device, also what is still in use.
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  /// Address of a block of `gpu_block_size(bytes)` bytes, uninitialised. When
  /// the device is full the cache is emptied, and when that does not help:
  /// Error, with how much was asked for, is free and is in use. An Error too
  /// while a step is being captured.
  cuda::Address allocate(std::size_t bytes);
  /// Takes a block back; `bytes` as it was asked for.
  void release(cuda::Address block, std::size_t bytes) noexcept;

  /// Gives what lies idle back to the device; nothing while a step is being
  /// captured.
  void empty_cache() noexcept;
  GpuMemoryStatistics statistics() const;

 private:
  // What the device gave in one piece: `count` blocks of `size` bytes.
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
  // How many blocks the next slab of a size gets.
  std::unordered_map<std::size_t, std::size_t> next_count_;
  GpuMemoryStatistics statistics_;
};

}  // namespace fuse
