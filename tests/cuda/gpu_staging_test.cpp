#include "fusebook/cuda/gpu_staging.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/gpu_testing.h"

using namespace testing;
using fuse::Gpu;
using fuse::GpuBlock;
using fuse::GpuStaging;

namespace {

void upload(Gpu& gpu, const GpuBlock& to, const std::vector<int>& values) {
  const std::size_t bytes = values.size() * sizeof(int);
  gpu.staging().upload(to.address(), bytes, "testing", [&](void* memory) {
    std::memcpy(memory, values.data(), bytes);
  });
}

std::vector<int> read(const GpuBlock& block, std::size_t count) {
  std::vector<int> values(count);
  std::memcpy(values.data(), block.data(), count * sizeof(int));
  return values;
}

}  // namespace

TEST_CASE("an upload in flight is never written over") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  const auto gpu = gpus.platform.gpu();
  std::vector<GpuBlock> blocks;
  for (int i = 0; i < 50; ++i) blocks.emplace_back(gpu, 64);
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    upload(*gpu, blocks[std::size_t(i)], {i, i * i, -i});
    // The device is sometimes far behind, sometimes not.
    gpus.driver.run(std::size_t(random.below(4)));
  }
  gpus.driver.run();
  for (int i = 0; i < 50; ++i) {
    CHECK(read(blocks[std::size_t(i)], 3) == std::vector<int>{i, i * i, -i});
  }
  CHECK(gpus.driver.count("cuMemHostAlloc") <= int(GpuStaging::most_buffers));
}

TEST_CASE("the ring grows to its limit, then waits for the oldest") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock block(gpu, 64);
  const int most = int(GpuStaging::most_buffers);
  for (int i = 1; i <= most; ++i) {
    upload(*gpu, block, {i});
    CHECK(gpus.driver.count("cuMemHostAlloc") == i);
  }
  CHECK(gpu->staging().waits() == 0);
  CHECK(gpus.driver.pending() == std::size_t(2 * most));  // copy and event
  upload(*gpu, block, {99});
  CHECK(gpu->staging().waits() == 1);
  CHECK(gpus.driver.count("cuEventSynchronize") == 1);
  CHECK(gpus.driver.count("cuMemHostAlloc") == most);
  // It waited for one copy, not for all.
  CHECK(gpus.driver.pending() == std::size_t(2 * most));
  gpus.driver.run();
  CHECK(read(block, 1) == std::vector<int>{99});
  CHECK(gpu->staging().uploads() == most + 1);
}

TEST_CASE("a buffer whose copy is over serves again at once") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock block(gpu, 64);
  for (int i = 0; i < 100; ++i) upload(*gpu, block, {i});
  CHECK(gpus.driver.count("cuMemHostAlloc") == 1);
  CHECK(gpu->staging().waits() == 0);
}

TEST_CASE("larger uploads get larger buffers, in place of the oldest") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock block(gpu, 1 << 20);
  for (int i = 0; i < int(GpuStaging::most_buffers); ++i) {
    upload(*gpu, block, {i});
  }
  std::vector<int> many(200000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = int(i);
  upload(*gpu, block, many);
  CHECK(gpus.driver.count("cuMemFreeHost") == 1);
  gpus.driver.run();
  CHECK(read(block, many.size()) == many);
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("leaving with uploads in flight waits for them") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  {
    const auto gpu = gpus.platform.gpu();
    const GpuBlock block(gpu, 64);
    upload(*gpu, block, {1, 2, 3});
  }
  CHECK(gpus.driver.violations.empty());
  CHECK(gpus.driver.alive() == "");
}
