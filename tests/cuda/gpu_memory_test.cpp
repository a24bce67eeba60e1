#include "fusebook/cuda/gpu_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::gpu_block_size;
using fuse::GpuBlock;
using fuse::GpuMemory;

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// How many slabs hold so many blocks of a small size: the first one has 8, each
// later one twice as many, up to 2 MiB.
int slabs_for(std::size_t blocks, std::size_t size) {
  int slabs = 0;
  for (std::size_t held = 0, next = 8; held < blocks; ++slabs) {
    held += next;
    next = std::min(2 * next, 2 * mib / size);
  }
  return slabs;
}

struct InUse {
  std::size_t now = 0;
  std::size_t most = 0;
};

}  // namespace

TEST_CASE("block sizes") {
  for (const auto& [bytes, size] : std::map<std::size_t, std::size_t>{
           {0, 256},
           {1, 256},
           {256, 256},
           {257, 512},
           {4096, 4096},
           {4097, 8 * kib},
           {256 * kib, 256 * kib},
           {256 * kib + 1, 320 * kib},
           {4 * mib, 4 * mib},
           {(std::size_t(1) << 40) + 1, (std::size_t(1) << 40) + 64 * kib}}) {
    CHECK(gpu_block_size(bytes) == size);
  }
}

TEST_CASE("a block that was given back is the next one of its size") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  GpuMemory& memory = gpu->memory();
  for (const std::size_t size : {std::size_t(100), 3 * mib}) {
    const auto first = memory.allocate(size);
    const auto second = memory.allocate(size);
    CHECK(first != second);
    memory.release(first, size);
    CHECK(memory.allocate(size) == first);
    memory.release(first, size);
    memory.release(second, size);
  }
  CHECK(memory.statistics().bytes_in_use == 0);
  const int asked = gpus.driver.count("cuMemAlloc");
  CHECK(asked == 3);  // one slab, two large blocks
  CHECK(memory.statistics().device_allocations == asked);
  for (int i = 0; i < 100; ++i)
    memory.release(memory.allocate(3 * mib), 3 * mib);
  CHECK(gpus.driver.count("cuMemAlloc") == asked);
  CHECK(memory.statistics().cache_hits == 103);
}

TEST_CASE("blocks are aligned, do not overlap, and small ones share slabs") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  GpuMemory& memory = gpu->memory();
  Random random(1);
  std::map<fuse::cuda::Address, std::size_t> used;  // start, size asked for
  std::map<std::size_t, InUse> blocks;              // of each size
  std::size_t total = 0;
  for (int i = 0; i < 20000; ++i) {
    if (!used.empty() && random.chance(0.4)) {
      auto at = used.lower_bound(
          std::next(used.begin(),
                    random.below(int(std::min<std::size_t>(used.size(), 20))))
              ->first);
      memory.release(at->first, at->second);
      total -= gpu_block_size(at->second);
      --blocks[gpu_block_size(at->second)].now;
      used.erase(at);
      continue;
    }
    const auto size =
        std::size_t(random.below(random.chance(0.1) ? 9000 : 300));
    const auto at = memory.allocate(size);
    REQUIRE(at % 256 == 0);
    const auto next = used.lower_bound(at);
    if (next != used.end()) REQUIRE(at + size <= next->first);
    if (next != used.begin()) {
      const auto& before = *std::prev(next);
      REQUIRE(before.first + before.second <= at);
      REQUIRE(before.first != at);
    }
    // All of it is there: the stand-in refuses writes to anywhere else.
    gpu->fill_bytes(reinterpret_cast<void*>(std::uintptr_t(at)), 1, size);
    used[at] = size;
    total += gpu_block_size(size);
    InUse& alike = blocks[gpu_block_size(size)];
    alike.most = std::max(alike.most, ++alike.now);
    REQUIRE(memory.statistics().bytes_in_use == std::int64_t(total));
  }
  CHECK(used.size() > 3000);
  int slabs = 0;
  for (const auto& [size, alike] : blocks) slabs += slabs_for(alike.most, size);
  CHECK(gpus.driver.count("cuMemAlloc") == slabs);
  CHECK(gpus.driver.bytes_allocated() ==
        std::size_t(memory.statistics().bytes_in_use +
                    memory.statistics().bytes_cached));
  for (const auto& [at, size] : used) memory.release(at, size);
  memory.empty_cache();
  CHECK(gpus.driver.bytes_allocated() == 0);
  CHECK(memory.statistics().bytes_cached == 0);
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("emptying the cache leaves what is in use") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock kept(gpu, 100);
  {
    const GpuBlock gone(gpu, 5 * mib);
  }
  {
    const GpuBlock gone(gpu, 100);
  }
  CHECK(gpu->memory().statistics().bytes_cached > std::int64_t(5 * mib));
  gpu->memory().empty_cache();
  // The slab of the small block stays, with its other blocks.
  CHECK(gpus.driver.bytes_allocated() == 8 * 256);
  CHECK(gpu->memory().statistics().bytes_in_use == 256);
  CHECK(gpu->memory().statistics().bytes_cached == 7 * 256);
  gpu->fill_bytes(kept.data(), 1, 100);
  const GpuBlock next(gpu, 100);
  CHECK(gpus.driver.bytes_allocated() == 8 * 256);
}

TEST_CASE("a full device gives up its cache before an error") {
  GpuFixture gpus;
  gpus.driver.memory_limit = 10 * mib;
  const auto gpu = gpus.platform.gpu();
  {
    const GpuBlock idle(gpu, 6 * mib);
  }
  const GpuBlock other(gpu, 7 * mib);  // fits only without the idle one
  CHECK(gpus.driver.count("cuMemFree") == 1);
  CHECK(gpu->memory().statistics().bytes_cached == 0);
  const std::string message =
      message_of<Error>([&] { const GpuBlock more(gpu, 4 * mib); });
  CHECK(message ==
        "cuda:0: out of memory: 4194304 bytes (4.0 MiB) were requested; this "
        "program has 7.0 MiB in use, and 3.0 MiB of 10.0 MiB are free "
        "(cuMemAlloc failed with code 2 (CUDA_ERROR_OUT_OF_MEMORY)); use fewer "
        "or smaller tensors");
  const GpuBlock small(gpu, 3 * mib);
  CHECK(gpu->memory().statistics().bytes_in_use == std::int64_t(10 * mib));
}

TEST_CASE("where a slab does not fit, a single block may") {
  GpuFixture gpus;
  gpus.driver.memory_limit = 600 * kib;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock first(gpu, 256 * kib);
  const GpuBlock second(gpu, 256 * kib);
  CHECK(gpus.driver.bytes_allocated() == 512 * kib);
  CHECK_THROWS_AS(GpuBlock(gpu, 256 * kib), Error);
  CHECK(gpu->memory().statistics().bytes_in_use == std::int64_t(512 * kib));
}

TEST_CASE("absurd sizes are refused in words") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  for (const std::size_t size : {~std::size_t(0), std::size_t(1) << 63}) {
    CHECK(contains(message_of<Error>([&] { gpu->memory().allocate(size); }),
                   "out of memory: " + std::to_string(size) + " bytes"));
  }
  CHECK(gpus.driver.count("cuMemAlloc") == 0);
}

TEST_CASE("blocks move") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  GpuBlock one(gpu, 10);
  void* const at = one.data();
  GpuBlock two(std::move(one));
  CHECK(two.data() == at);
  CHECK(two.bytes() == 10);
  GpuBlock three;
  CHECK(three.data() == nullptr);
  three = std::move(two);
  CHECK(three.data() == at);
  three = GpuBlock();
  CHECK(gpu->memory().statistics().bytes_in_use == 0);
}
