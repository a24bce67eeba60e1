#include "fusebook/cuda/gpu_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "fusebook/cuda/gpu_error.h"

namespace fuse {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t fine = 256;
constexpr std::size_t fine_limit = 4 * kib;
constexpr std::size_t small_limit = 256 * kib;
constexpr std::size_t slab_limit = 2048 * kib;
// Number of blocks in the first slab of a size; each later one has twice as
// many.
constexpr std::size_t first_count = 8;
constexpr std::size_t largest_request =
    std::size_t(std::numeric_limits<std::int64_t>::max() / 2);

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::size_t gpu_block_size(std::size_t bytes) {
  if (bytes == 0) return fine;
  if (bytes <= fine_limit) return round_up(bytes, fine);
  if (bytes <= small_limit) return round_up(bytes, 4 * kib);
  return round_up(bytes, 64 * kib);
}

GpuMemory::~GpuMemory() {
  for (const auto& [address, slab] : slabs_) {
    context_.quietly([&, start = address] { context_.api().mem_free(start); });
  }
}

cuda::Address GpuMemory::take_cached(std::size_t size) {
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return 0;
  const cuda::Address block = found->second.back();
  found->second.pop_back();
  statistics_.bytes_cached -= std::int64_t(size);
  return block;
}

GpuMemory::Slab& GpuMemory::slab_of(cuda::Address block) {
  return std::prev(slabs_.upper_bound(block))->second;
}

// Allocates memory for `count` blocks or, if that is too much, for one.
cuda::Address GpuMemory::ask_device(std::size_t size, std::size_t* count) {
  const CurrentContext current(context_);
  const CudaApi& api = context_.api();
  cuda::Address start = 0;
  cuda::Result code = api.mem_alloc(&start, size * *count);
  if (code == cuda::out_of_memory) {
    // Blocks of other sizes may be idle.
    empty_locked();
    *count = 1;
    code = api.mem_alloc(&start, size);
  }
  if (code == cuda::out_of_memory) throw_full(size, code);
  context_.check(code, "cuMemAlloc", fmt::format("asking for {} bytes", size));
  ++statistics_.device_allocations;
  return start;
}

void GpuMemory::add_slab(std::size_t size) {
  std::size_t count = 1;
  if (size <= small_limit) {
    std::size_t& next =
        next_count_.try_emplace(size, first_count).first->second;
    count = next;
    next = std::min(2 * next, slab_limit / size);
  }
  auto& blocks = free_[size];
  blocks.reserve(blocks.size() + count);
  // Made first, so that nothing is lost once the device has allocated memory.
  Slabs::node_type node =
      Slabs({{0, {size, 0, 0}}}).extract(Slabs::key_type(0));
  const cuda::Address start = ask_device(size, &count);
  node.key() = start;
  node.mapped().count = count;
  slabs_.insert(std::move(node));
  // Backwards: blocks are handed out in the order of their addresses.
  for (std::size_t i = count; i-- > 0;) blocks.push_back(start + i * size);
  statistics_.bytes_cached += std::int64_t(count * size);
}

cuda::Address GpuMemory::allocate(std::size_t bytes) {
  if (context_.is_capturing()) {
    context_.refuse_while_capturing(
        fmt::format("{} bytes of new memory", bytes));
  }
  // Before the mutex: a capturing thread may have memory to release.
  const StreamHold hold(context_.gate(), StreamHold::Kind::use);
  const std::lock_guard lock(mutex_);
  if (bytes > largest_request) throw_full(bytes, cuda::out_of_memory);
  const std::size_t size = gpu_block_size(bytes);
  cuda::Address block = take_cached(size);
  if (block != 0) {
    ++statistics_.cache_hits;
  } else {
    add_slab(size);
    block = take_cached(size);
  }
  ++slab_of(block).in_use;
  statistics_.bytes_in_use += std::int64_t(size);
  statistics_.most_bytes_in_use =
      std::max(statistics_.most_bytes_in_use, statistics_.bytes_in_use);
  return block;
}

void GpuMemory::release(cuda::Address block, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t size = gpu_block_size(bytes);
  --slab_of(block).in_use;
  statistics_.bytes_in_use -= std::int64_t(size);
  statistics_.bytes_cached += std::int64_t(size);
  free_[size].push_back(block);
}

void GpuMemory::empty_locked() noexcept {
  for (auto slab = slabs_.begin(); slab != slabs_.end();) {
    const auto [start, content] = *slab;
    if (content.in_use > 0) {
      ++slab;
      continue;
    }
    const std::size_t bytes = content.size * content.count;
    std::erase_if(free_[content.size], [&, first = start](cuda::Address block) {
      return block >= first && block < first + bytes;
    });
    context_.quietly([&, first = start] { context_.api().mem_free(first); });
    statistics_.bytes_cached -= std::int64_t(bytes);
    slab = slabs_.erase(slab);
  }
}

void GpuMemory::empty_cache() noexcept {
  if (context_.is_capturing()) return;  // it would end the capture
  const StreamHold hold(context_.gate(), StreamHold::Kind::use);
  const std::lock_guard lock(mutex_);
  empty_locked();
  next_count_.clear();
}

GpuMemoryStatistics GpuMemory::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void GpuMemory::throw_full(std::size_t bytes, cuda::Result code) {
  std::string message = fmt::format(
      "{}: out of memory: {} bytes ({}) were requested; this program has {} in "
      "use",
      context_.label(), bytes, byte_text(static_cast<long long>(bytes)),
      byte_text(statistics_.bytes_in_use));
  std::size_t free = 0;
  std::size_t total = 0;
  const CurrentContext current(context_);
  if (context_.api().mem_get_info(&free, &total) == cuda::success) {
    message += ", and " + byte_text(static_cast<long long>(free)) + " of " +
               byte_text(static_cast<long long>(total)) + " are free";
  }
  throw OutOfMemory(message + " (cuMemAlloc failed with " +
                    code_text(context_.api(), code) +
                    "); use fewer or smaller tensors");
}

}  // namespace fuse
