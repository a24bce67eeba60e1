#include "fusebook/cuda/gpu_context.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "fusebook/cuda_launch/gpu_event.h"
#include "support/gpu_testing.h"

using namespace testing;
using fuse::Error;
using fuse::GpuBlock;
using fuse::GpuEvent;

TEST_CASE("a device is given back whole") {
  GpuFixture gpus;
  {
    const auto gpu = gpus.platform.gpu();
    CHECK(gpus.driver.alive() != "");
    const GpuBlock block(gpu, 1000);
    const char text[] = "some bytes";
    gpu->copy_to_device(block.data(), text, sizeof(text));
  }
  CHECK(gpus.driver.alive() == "");
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("what was current before is current again") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const auto other = reinterpret_cast<fuse::cuda::Context>(0x40);
  gpus.driver.api().ctx_push(other);
  const GpuBlock block(gpu, 64);
  gpu->fill_bytes(block.data(), 1, 64);
  gpu->synchronize();
  fuse::cuda::Context popped = nullptr;
  gpus.driver.api().ctx_pop(&popped);
  CHECK(popped == other);
}

TEST_CASE("copies go there and back, of any size") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  const auto gpu = gpus.platform.gpu();
  for (const std::size_t size : {1, 1000, 65536, 65537, 1 << 20}) {
    std::vector<char> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = char(i * 7 + size);
    const std::vector<char> original = bytes;
    const GpuBlock block(gpu, size);
    const GpuBlock copy(gpu, size);
    gpu->copy_to_device(block.data(), bytes.data(), size);
    bytes.assign(size, 0);  // it may change as soon as the copy returns
    gpu->copy_on_device(copy.data(), block.data(), size);
    gpu->fill_bytes(block.data(), 0x5A, size);
    std::vector<char> back(size);
    gpu->copy_to_host(back.data(), copy.data(), size);
    CHECK(back == original);
    gpu->copy_to_host(back.data(), block.data(), size);
    CHECK(back == std::vector<char>(size, 0x5A));
  }
  CHECK(gpus.driver.violations.empty());
}

TEST_CASE("copies of nothing ask nothing of the device") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const std::size_t before = gpus.driver.calls.size();
  gpu->copy_to_device(nullptr, nullptr, 0);
  gpu->copy_to_host(nullptr, nullptr, 0);
  gpu->copy_on_device(nullptr, nullptr, 0);
  gpu->fill_bytes(nullptr, 0, 0);
  CHECK(gpus.driver.calls.size() == before);
}

TEST_CASE("an error says where, which call, which code and what to do") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  gpus.driver.fail_always("cuStreamSynchronize", 900);
  CHECK(message_of<Error>([&] { gpu->synchronize(); }) ==
        "cuda:0: waiting for the device: cuStreamSynchronize failed with code "
        "900; the step did something that cannot be captured in a graph: run "
        "it once beforehand, and read no values while capturing");
  gpus.driver.fail_always("cuStreamSynchronize", 0);
  gpu->synchronize();
}

TEST_CASE("a lost context is told once in full, then in short") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock block(gpu, 64);
  gpus.driver.fail_always("cuMemsetD8Async", 700);
  const auto fill = [&] { gpu->fill_bytes(block.data(), 0, 64); };
  const std::string first = message_of<Error>(fill);
  CHECK(contains(first,
                 "cuda:0: filling 64 bytes: cuMemsetD8Async failed with code "
                 "700 (CUDA_ERROR_ILLEGAL_ADDRESS): an illegal memory access"));
  CHECK(contains(first, "the device's context is lost"));
  CHECK(gpu->context().is_lost());
  const std::size_t calls = gpus.driver.calls.size();
  const std::string later = message_of<Error>([&] { gpu->synchronize(); });
  CHECK(later == message_of<Error>(fill));
  CHECK(contains(later, "cuda:0 can no longer be used"));
  CHECK(contains(later, "'filling 64 bytes', where cuMemsetD8Async"));
  // Nothing more is asked of it.
  CHECK(gpus.driver.calls.size() == calls);
}

TEST_CASE("which codes end a context") {
  int sticky = 0;
  for (int code = 0; code < 1000; ++code) sticky += fuse::is_sticky(code);
  CHECK(sticky == 15);
  for (const int code : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717,
                         718, 719, 721, 911}) {
    CHECK(fuse::is_sticky(code));
  }
  for (const int code : {0, 1, 2, 209, 600, 701, 900, 999}) {
    CHECK_FALSE(fuse::is_sticky(code));
  }
}

TEST_CASE("events measure what lies between them") {
  GpuFixture gpus;
  gpus.driver.deferred = true;
  const auto gpu = gpus.platform.gpu();
  const GpuBlock block(gpu, 64);
  GpuEvent begin(gpu);
  GpuEvent end(gpu);
  begin.record();
  for (int i = 0; i < 3; ++i) gpu->fill_bytes(block.data(), 1, 64);
  end.record();
  CHECK_FALSE(begin.is_over());
  gpus.driver.run(1);
  CHECK(begin.is_over());
  CHECK_FALSE(end.is_over());
  // The stand-in's clock counts pieces of work.
  CHECK(end.milliseconds_since(begin) == 4);
  CHECK(end.is_over());
  end.record();
  CHECK_FALSE(end.is_over());
  end.wait();
  CHECK(end.is_over());
}

TEST_CASE("several threads may use a device") {
  GpuFixture gpus;
  const auto gpu = gpus.platform.gpu();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const GpuBlock block(gpu, std::size_t(1 + i * 13));
        const int value = t * 1000 + i;
        gpu->copy_to_device(block.data(), &value, 1);
        char back = 0;
        gpu->copy_to_host(&back, block.data(), 1);
        wrong[std::size_t(t)] += back != char(value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
  CHECK(gpus.driver.violations.empty());
  CHECK(gpu->memory().statistics().bytes_in_use == 0);
}
