#include "fusebook/device/allocator.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/support/available_memory.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

using namespace fuse;

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::uintptr_t address(const std::shared_ptr<Storage>& storage) {
  return reinterpret_cast<std::uintptr_t>(storage->data);
}

}  // namespace

TEST_CASE("blocks are aligned and can be written to the last byte") {
  for (const std::size_t size :
       {std::size_t(0), std::size_t(1), std::size_t(63), std::size_t(65), kib,
        5 * kib, mib - 1, mib, mib + 1, 7 * mib}) {
    const auto storage = allocate_storage(size);
    CHECK(address(storage) != 0);
    CHECK(address(storage) % 64 == 0);
    CHECK(storage->size >= size);
    std::memset(storage->data, 0x5A, storage->size);
  }
}

TEST_CASE("what was freed last is handed out first") {
  auto first = allocate_storage(4 * mib);
  auto second = allocate_storage(4 * mib);
  const auto at_first = address(first);
  const auto at_second = address(second);
  const auto before = allocator_statistics();
  first.reset();
  second.reset();
  second = allocate_storage(4 * mib);
  first = allocate_storage(4 * mib);
  CHECK(address(second) == at_second);
  CHECK(address(first) == at_first);
  const auto after = allocator_statistics();
  CHECK(after.system_allocations == before.system_allocations);
  CHECK(after.cache_hits == before.cache_hits + 2);
}

TEST_CASE("sizes of one rounding share blocks, others do not") {
  auto storage = allocate_storage(4 * mib - 100);
  const auto at = address(storage);
  storage.reset();
  const auto other = allocate_storage(5 * mib);
  CHECK(address(other) != at);
  CHECK(address(allocate_storage(4 * mib)) == at);
}

TEST_CASE("statistics count bytes in use and cached") {
  empty_cache();
  const auto before = allocator_statistics();
  CHECK(before.bytes_cached == 0);
  auto storage = allocate_storage(3 * mib);
  CHECK(allocator_statistics().bytes_in_use ==
        before.bytes_in_use + std::int64_t(3 * mib));
  storage.reset();
  CHECK(allocator_statistics().bytes_in_use == before.bytes_in_use);
  CHECK(allocator_statistics().bytes_cached == std::int64_t(3 * mib));
  empty_cache();
  CHECK(allocator_statistics().bytes_cached == 0);
  storage = allocate_storage(3 * mib);
  CHECK(allocator_statistics().system_allocations ==
        before.system_allocations + 2);
}

// Beside it books are kept as simply as can be.
TEST_CASE("statistics after every allocation, release and emptying") {
  empty_cache();
  AllocatorStatistics wanted = allocator_statistics();
  std::map<std::size_t, std::int64_t> cached;  // blocks of each size
  std::vector<std::shared_ptr<Storage>> held;
  const std::vector<std::size_t> sizes = {64,       128,     100, 4 * kib,
                                          12 * kib, mib / 2, mib, 2 * mib};
  Generator generator(7);
  const auto below = [&](std::size_t n) { return generator.bits() % n; };
  const auto allocate = [&](std::size_t bytes) {
    held.push_back(allocate_storage(bytes));
    const std::size_t size = held.back()->size;
    if (cached[size] > 0) {
      --cached[size];
      ++wanted.cache_hits;
      wanted.bytes_cached -= std::int64_t(size);
    } else {
      ++wanted.system_allocations;
    }
    wanted.bytes_in_use += std::int64_t(size);
  };
  const auto release = [&](std::size_t i) {
    const std::size_t size = held[i]->size;
    held.erase(held.begin() + std::ptrdiff_t(i));
    ++cached[size];
    wanted.bytes_in_use -= std::int64_t(size);
    wanted.bytes_cached += std::int64_t(size);
  };
  for (int i = 0; i < 2000; ++i) {
    const auto what = below(100);
    if (what < 50) {
      allocate(sizes[below(sizes.size())]);
    } else if (what < 98) {
      if (!held.empty()) release(below(held.size()));
    } else {
      empty_cache();
      cached.clear();
      wanted.bytes_cached = 0;
    }
    const AllocatorStatistics now = allocator_statistics();
    REQUIRE(now.bytes_in_use == wanted.bytes_in_use);
    REQUIRE(now.bytes_cached == wanted.bytes_cached);
    REQUIRE(now.cache_hits == wanted.cache_hits);
    REQUIRE(now.system_allocations == wanted.system_allocations);
  }
  CHECK(wanted.cache_hits > 100);
}

// Nothing of it is ever touched.
TEST_CASE("what the cache holds can be had again, once") {
  empty_cache();
  const std::int64_t available = available_memory();
  if (available == std::numeric_limits<std::int64_t>::max()) return;
  const auto share = [&](int tenths) { return available / 10 * tenths; };
  auto block = allocate_storage(std::size_t(share(6)));
  CHECK_THROWS_AS(require_memory(share(7)), Error);  // it is in use
  block.reset();
  require_memory(share(5));
  require_memory(share(7));
  CHECK_THROWS_AS(require_memory(share(13)), Error);
  // For a block of another size the cache is emptied.
  block = allocate_storage(std::size_t(share(7)));
  CHECK(allocator_statistics().bytes_cached == 0);
  block.reset();
  empty_cache();
}

TEST_CASE("large blocks start at different offsets") {
  empty_cache();
  std::vector<std::shared_ptr<Storage>> blocks;
  std::set<std::uintptr_t> offsets;
  std::set<std::uintptr_t> lines;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(allocate_storage(mib));
    offsets.insert(address(blocks.back()) % (2 * mib));
    lines.insert(address(blocks.back()) % 4096);
  }
  CHECK(offsets.size() == 64);
  CHECK(lines.size() == 64);
}

TEST_CASE("memory that cannot be had is refused with its size") {
  const std::size_t petabyte = std::size_t(1) << 50;
  try {
    allocate_storage(petabyte);
    FAIL("a petabyte was handed out");
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find("1125899906842624 bytes (1.1 PB) were requested") !=
          std::string::npos);
    CHECK(message.find("are available") != std::string::npos);
  }
  CHECK_THROWS_AS(allocate_storage(~std::size_t(0)), Error);
  CHECK_THROWS_AS(require_memory(std::int64_t(petabyte)), Error);
  require_memory(1000);
  // The failure left everything usable.
  CHECK(allocate_storage(mib)->data != nullptr);
}

TEST_CASE("memory that is handed out but not yet touched counts") {
  // Each piece fits alone; together they never can, touched or not.
  const std::size_t piece = std::size_t(1) << 30;
  std::vector<std::shared_ptr<Storage>> pieces;
  const auto take_everything = [&] {
    for (int i = 0; i < 1 << 20; ++i) pieces.push_back(allocate_storage(piece));
  };
  CHECK_THROWS_AS(take_everything(), Error);
  pieces.clear();
  empty_cache();
}

TEST_CASE("a tensor's temporary is the next one handed out") {
  Tensor temporary = empty({1024, 1024});
  const void* data = temporary.raw_data();
  temporary = Tensor();
  CHECK(empty({1024, 1024}).raw_data() == data);
}

TEST_CASE("storage lives as long as its last tensor") {
  const auto before = allocator_statistics().bytes_in_use;
  std::vector<Tensor> all = scalars(1000);
  Tensor last = all.back();
  all.clear();
  CHECK(allocator_statistics().bytes_in_use > before);
  last = Tensor();
  CHECK(allocator_statistics().bytes_in_use == before);
}

TEST_CASE("borrowed memory is never handed out") {
  std::vector<float> memory(mib / 4);
  const auto cached = allocator_statistics().bytes_cached;
  from_blob(memory.data(), {std::int64_t(memory.size())});
  CHECK(allocator_statistics().bytes_cached == cached);
}

TEST_CASE("many threads at once") {
  const auto before = allocator_statistics().bytes_in_use;
  std::vector<std::thread> threads;
  std::vector<int> clashes(4, 0);
  for (std::size_t t = 0; t < clashes.size(); ++t) {
    threads.emplace_back([t, &clashes] {
      for (int i = 0; i < 2000; ++i) {
        const auto storage = allocate_storage(512);
        std::memset(storage->data, int(t), 512);
        std::this_thread::yield();
        const auto* bytes = static_cast<const unsigned char*>(storage->data);
        for (int k = 0; k < 512; ++k) clashes[t] += bytes[k] != t ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(clashes == std::vector<int>(4, 0));
  CHECK(allocator_statistics().bytes_in_use == before);
}
