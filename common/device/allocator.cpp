#include "fusebook/device/allocator.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusebook/device/backend.h"
#include "fusebook/support/available_memory.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t page = 4096;
constexpr std::size_t huge_page = std::size_t(2) << 20;
constexpr std::size_t large_size = std::size_t(1) << 20;
constexpr std::size_t largest_request =
    std::size_t(std::numeric_limits<std::int64_t>::max() / 2);
/// Memory reserved for everything but tensors: the program, its stack, the
/// compiler.
constexpr std::int64_t reserve = std::int64_t(64) << 20;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Requests of one rounded size share a list of free blocks.
std::size_t rounded_size(std::size_t bytes) {
  if (bytes <= alignment) return alignment;
  return round_up(bytes, bytes < page ? alignment : page);
}

/// Offset of the `index`-th large block from a 2 MiB boundary: a different
/// cache line and page for each of 64 consecutive blocks.
std::size_t stagger(std::size_t index) {
  return (index % 64) * 5 * alignment % page + (index % 32) * page;
}

/// Maps `size` bytes that start `offset` bytes after a 2 MiB boundary.
void* map_staggered(std::size_t size, std::size_t offset) {
  const std::size_t wanted = round_up(size + offset, page);
  const std::size_t total = wanted + huge_page;
  void* start = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* first = static_cast<char*>(start);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t head = round_up(address, huge_page) - address;
  if (head > 0) munmap(first, head);
  if (head < huge_page) munmap(first + head + wanted, huge_page - head);
  // A hint only: without huge pages, small ones work too.
  madvise(first + head, wanted, MADV_HUGEPAGE);
  return first + head + offset;
}

void unmap_staggered(void* data, std::size_t size) {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(data) % huge_page;
  munmap(static_cast<char*>(data) - offset, round_up(size + offset, page));
}

void release_to_system(void* data, std::size_t size) {
  if (size >= large_size) {
    unmap_staggered(data, size);
  } else {
    std::free(data);
  }
}

class CachingAllocator {
 public:
  void* allocate(std::size_t size);
  void release(void* data, std::size_t size);
  void require(std::int64_t bytes);
  void empty();
  AllocatorStatistics statistics();

 private:
  void* take_cached(std::size_t size);
  void* take_from_system(std::size_t size);
  bool has_room(std::int64_t bytes);
  void empty_locked();

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;
  AllocatorStatistics statistics_;
  std::size_t large_blocks_ = 0;
  /// Bytes that may be allocated before asking the system again.
  std::int64_t credit_ = 0;
};

/// Memory is mapped on first use, so the system grants far more than it has and
/// kills the process later. Therefore everything handed out, including memory
/// not touched yet, must fit in what is available.
bool CachingAllocator::has_room(std::int64_t bytes) {
  if (bytes <= credit_) return true;
  const std::int64_t available = available_memory();
  if (available == std::numeric_limits<std::int64_t>::max()) return true;
  const std::int64_t taken =
      statistics_.bytes_in_use + statistics_.bytes_cached;
  const std::int64_t room =
      room_for_more(available, resident_memory(), taken) - reserve;
  if (bytes > room) return false;
  credit_ = bytes + (room - bytes) / 8;
  return true;
}

[[noreturn]] void throw_out_of_memory(std::int64_t bytes) {
  throw Error(fmt::format(
      "out of memory: {} bytes ({}) were requested and {} are available; use "
      "fewer or smaller tensors",
      bytes, format_bytes(bytes), format_bytes(available_memory())));
}

void* CachingAllocator::take_cached(std::size_t size) {
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* data = found->second.back();
  found->second.pop_back();
  statistics_.bytes_cached -= std::int64_t(size);
  ++statistics_.cache_hits;
  return data;
}

void* CachingAllocator::take_from_system(std::size_t size) {
  if (!has_room(std::int64_t(size))) {
    // The cache may hold idle blocks of other sizes.
    empty_locked();
    if (!has_room(std::int64_t(size))) return nullptr;
  }
  void* data = size >= large_size ? map_staggered(size, stagger(large_blocks_))
                                  : std::aligned_alloc(alignment, size);
  if (data == nullptr) return nullptr;
  if (size >= large_size) ++large_blocks_;
  credit_ -= std::int64_t(size);
  ++statistics_.system_allocations;
  return data;
}

void* CachingAllocator::allocate(std::size_t size) {
  const std::lock_guard lock(mutex_);
  void* data = take_cached(size);
  if (data == nullptr) data = take_from_system(size);
  if (data == nullptr) throw_out_of_memory(std::int64_t(size));
  statistics_.bytes_in_use += std::int64_t(size);
  return data;
}

void CachingAllocator::release(void* data, std::size_t size) {
  const std::lock_guard lock(mutex_);
  statistics_.bytes_in_use -= std::int64_t(size);
  statistics_.bytes_cached += std::int64_t(size);
  free_[size].push_back(data);
}

void CachingAllocator::require(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  // Cached blocks can be reused or returned to the system.
  const std::int64_t missing = bytes - statistics_.bytes_cached;
  credit_ = 0;
  if (missing > 0 && !has_room(missing)) throw_out_of_memory(bytes);
}

void CachingAllocator::empty_locked() {
  for (auto& [size, blocks] : free_) {
    for (void* data : blocks) release_to_system(data, size);
    blocks.clear();
  }
  statistics_.bytes_cached = 0;
  credit_ = 0;
}

void CachingAllocator::empty() {
  const std::lock_guard lock(mutex_);
  empty_locked();
}

AllocatorStatistics CachingAllocator::statistics() {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

CachingAllocator& allocator() {
  // Never destroyed: tensors with static lifetime may outlive it otherwise.
  static auto* const instance = new CachingAllocator;
  return *instance;
}

}  // namespace

Storage::~Storage() {
  if (owned) allocator().release(data, size);
}

std::shared_ptr<Storage> allocate_storage(std::size_t bytes) {
  if (bytes > largest_request) {
    throw Error(fmt::format(
        "out of memory: {} bytes were requested; use fewer or smaller tensors",
        bytes));
  }
  const std::size_t size = rounded_size(bytes);
  auto storage = std::make_shared<Storage>(nullptr, size, false);
  storage->data = allocator().allocate(size);
  storage->owned = true;
  return storage;
}

std::shared_ptr<Storage> allocate_storage(std::size_t bytes,
                                          const Device& device) {
  auto storage = backend_of(device).allocate(device.index, bytes);
  storage->device = device;
  return storage;
}

void require_memory(std::int64_t bytes) { allocator().require(bytes); }

AllocatorStatistics allocator_statistics() { return allocator().statistics(); }

void empty_cache() { allocator().empty(); }

}  // namespace fuse
