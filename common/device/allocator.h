#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fusebook/device/device.h"

namespace fuse {

/// The memory behind one or more tensors. Owned memory returns to the cache
/// when the last tensor releases it; borrowed memory is left alone. On another
/// device `data` is an address there.
struct Storage {
  Storage(void* address, std::size_t bytes, bool is_owned)
      : data(address), size(bytes), owned(is_owned) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  std::size_t size;
  bool owned;
  Device device = {};
  /// Owns a device's memory, or keeps that of others alive.
  std::shared_ptr<void> block = {};
};

/// Storage of at least `bytes` bytes, uninitialised, aligned to 64 bytes.
///
/// A freed block is kept and is the next one handed out for its size, so a
/// temporary of an eager step uses memory that is already mapped and often
/// still in the CPU's cache. Blocks of 1 MiB and more start at different
/// offsets within 2 MiB: arrays that all start on such a boundary compete for
/// the same cache sets, which makes wide stores up to 1.5 times slower.
/// Thread-safe. Throws Error, saying how many bytes were requested, if out of
/// memory.
std::shared_ptr<Storage> allocate_storage(std::size_t bytes);
/// The same in the memory of a device; see GpuMemory for a GPU's.
std::shared_ptr<Storage> allocate_storage(std::size_t bytes,
                                          const Device& device);

/// Throws Error if `bytes` more bytes are not available now. Call it before a
/// long set-up, so that an absurd size is rejected in the first millisecond.
void require_memory(std::int64_t bytes);

/// The current and past use of the caching allocator.
struct AllocatorStatistics {
  std::int64_t bytes_in_use = 0;
  std::int64_t bytes_cached = 0;
  std::int64_t system_allocations = 0;
  std::int64_t cache_hits = 0;
};
AllocatorStatistics allocator_statistics();

/// Returns all cached blocks to the system.
void empty_cache();

}  // namespace fuse
