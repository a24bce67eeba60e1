#include "fusebook/bench/bandwidth.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdint>
#include <vector>

#include "fusebook/bench/benchmark.h"
#include "fusebook/device/allocator.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"

using namespace fuse;

namespace {

const std::vector<std::int64_t> mixed{1000, 0, 1, 15, 16, 17, 70000, 3};

constexpr std::uint32_t all_bits = ~std::uint32_t(0);

std::uint32_t bits_of(const Tensor& tensor, std::int64_t i) {
  return std::bit_cast<std::uint32_t>(tensor.data<float>()[i]);
}

// Bits of every kind of number: denormals, infinities and NaNs, too.
std::uint32_t pattern_bits(std::size_t k, std::int64_t i) {
  return std::uint32_t(i + 1) * 2654435761U ^ std::uint32_t(k) * 0x9E3779B9U;
}

void fill(const AccessPattern& pattern, std::size_t reads) {
  for (std::size_t t = 0; t < mixed.size(); ++t) {
    for (std::size_t k = 0; k < reads; ++k) {
      Tensor array = pattern.array(k, t);
      for (std::int64_t i = 0; i < array.numel(); ++i) {
        array.data<float>()[i] = std::bit_cast<float>(pattern_bits(k, i));
      }
    }
  }
}

// Elements whose bits are not those, all tensors together.
long count_wrong(const AccessPattern& pattern, std::size_t reads,
                 std::size_t writes, std::uint32_t flips) {
  long wrong = 0;
  for (std::size_t t = 0; t < mixed.size(); ++t) {
    for (std::size_t k = 0; k < reads; ++k) {
      const Tensor array = pattern.array(k, t);
      for (std::int64_t i = 0; i < array.numel(); ++i) {
        std::uint32_t odd = 0;
        for (std::size_t r = 0; r < reads; ++r) odd ^= pattern_bits(r, i);
        const std::uint32_t wanted =
            pattern_bits(k, i) ^ (k < writes ? odd & flips : 0U);
        wrong += bits_of(array, i) == wanted ? 0 : 1;
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("bytes of one pass") {
  CHECK(AccessPattern({1024, 1024}).bytes() == 2048 * 4 * 7);
  CHECK(AccessPattern({10}, 2, 1).bytes() == 10 * 4 * 3);
  CHECK(AccessPattern({10}, 2, 0).bytes() == 10 * 4 * 2);
  CHECK(AccessPattern({}).bytes() == 0);
}

TEST_CASE("a pass reads and writes every element once") {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    for (const int writes : {1, 2, 3}) {
      const AccessPattern pattern(mixed, 3, writes);
      for (const std::uint32_t flips : {all_bits, 0x80000001U}) {
        fill(pattern, 3);
        pattern.run(AccessPattern::Width::bytes32, flips);
        CHECK(count_wrong(pattern, 3, std::size_t(writes), flips) == 0);
      }
    }
  }
  set_thread_count(0);
}

// Loads alone: on memory that cannot be written, a store would end the program.
TEST_CASE("a pass that only reads stores nothing") {
  const std::size_t bytes = std::size_t(70000) * sizeof(float);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  {
    const AccessPattern pattern({{Tensor::from_memory(memory, {70000})}}, 0);
    for (const auto width : AccessPattern::widths) pattern.run(width, all_bits);
  }
  CHECK(munmap(memory, bytes) == 0);
}

// On memory that cannot be read, a load ends the program.
TEST_CASE("a pass that only reads loads all of it") {
  constexpr std::size_t bytes = std::size_t(2048) * sizeof(float);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(mprotect(static_cast<char*>(memory) + bytes / 2, bytes / 2,
                   PROT_NONE) == 0);
  const AccessPattern pattern({{Tensor::from_memory(memory, {2048})}}, 0);
  for (const auto width : AccessPattern::widths) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);
      pattern.run(width);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSEGV);
  }
  CHECK(munmap(memory, bytes) == 0);
}

TEST_CASE("a pass leaves what it finds, whatever numbers these are") {
  const AccessPattern pattern(mixed, 4, 3);
  fill(pattern, 4);
  for (const auto width :
       {AccessPattern::Width::bytes32, AccessPattern::Width::bytes64}) {
    pattern.run(width);
    CHECK(count_wrong(pattern, 4, 3, 0) == 0);
  }
}

TEST_CASE("a pattern over tensors that are there works in their memory") {
  std::vector<std::vector<Tensor>> arrays(3);
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    for (const std::int64_t size : mixed) {
      arrays[k].push_back(full({size}, double(k + 1)));
    }
  }
  const AccessPattern pattern(arrays, 2);
  CHECK(pattern.bytes() == AccessPattern(mixed, 3, 2).bytes());
  fill(pattern, 3);
  pattern.run(AccessPattern::Width::bytes64, all_bits);
  CHECK(count_wrong(pattern, 3, 2, all_bits) == 0);
  for (std::size_t t = 0; t < mixed.size(); ++t) {
    CHECK(pattern.array(2, t).raw_data() == arrays[2][t].raw_data());
  }
}

TEST_CASE("a pattern over tensors that do not go together is refused") {
  const Tensor four = zeros({4});
  const auto refused = [&](const Tensor& other) {
    CHECK_THROWS_AS(AccessPattern({{four}, {other}}, 1), Error);
  };
  AccessPattern({{four}, {four}}, 1).run();
  refused(Tensor());
  refused(zeros({5}));
  refused(zeros({4}, DType::float64));
  refused(zeros({4, 4}).select(1, 0));
  CHECK_THROWS_AS(AccessPattern({{four}, {four, four}}, 1), Error);
  CHECK_THROWS_AS(AccessPattern({{four}}, 2), Error);
  CHECK_THROWS_AS(AccessPattern(std::vector<std::vector<Tensor>>{}, 1), Error);
}

// Where a base lies is the pattern's secret: of three arrays that hold 1 the
// bits turn over in a stretch that is as long as the tensor.
TEST_CASE("staggered bases and wider loads cover each tensor, too") {
  using Bases = AccessPattern::Bases;
  for (const Bases bases : {Bases::allocated, Bases::staggered}) {
    for (const auto width : AccessPattern::widths) {
      const AccessPattern pattern(mixed, 3, 2, bases);
      for (std::size_t t = 0; t < mixed.size(); ++t) {
        for (std::size_t k = 0; k < 3; ++k) {
          Tensor array = pattern.array(k, t);
          std::fill_n(array.data<float>(), array.numel(), 1.0F);
        }
      }
      // An odd number of them has these bits.
      pattern.run(width, std::bit_cast<std::uint32_t>(1.0F));
      for (std::size_t t = 0; t < mixed.size(); ++t) {
        for (std::size_t k = 0; k < 3; ++k) {
          const std::vector<double> now = pattern.array(k, t).to_vector();
          const auto turned = std::count(now.begin(), now.end(), 0.0);
          const auto ones = std::count(now.begin(), now.end(), 1.0);
          CHECK(turned == (k < 2 ? mixed[t] : 0));
          CHECK(ones + turned == std::ptrdiff_t(now.size()));
          const auto first = std::find(now.begin(), now.end(), 0.0);
          if (turned > 0)
            CHECK(std::count(first, first + turned, 0.0) == turned);
        }
      }
    }
  }
}

TEST_CASE("arrays hold zeros, and a pass keeps them") {
  const AccessPattern pattern({100});
  for (int i = 0; i < 3; ++i) pattern.run();
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(bitwise_equal(pattern.array(k, 0), zeros({100})));
  }
}

TEST_CASE("passes over nothing") {
  AccessPattern({}).run();
  AccessPattern({0, 0}).run();
}

TEST_CASE("every allowed pattern runs, others are refused") {
  for (int reads = 1; reads <= 8; ++reads) {
    for (int writes = 0; writes <= reads; ++writes) {
      const AccessPattern pattern({33}, reads, writes);
      for (const auto width : AccessPattern::widths) pattern.run(width);
    }
  }
  CHECK_THROWS_AS(AccessPattern({1}, 4, 5), Error);
  CHECK_THROWS_AS(AccessPattern({1}, 4, -1), Error);
  CHECK_THROWS_AS(AccessPattern({1}, 0, 0), Error);
  CHECK_THROWS_AS(AccessPattern({1}, 9, 1), Error);
  CHECK_THROWS_AS(AccessPattern({-1}), Error);
}

TEST_CASE("it can stand beside other functions") {
  const AccessPattern pattern({4096});
  InterleavedOptions options;
  options.min_run_time_s = 1e-3;
  options.min_rounds = 3;
  const auto results = interleaved({[&] { pattern.run(); }, [] {}}, options);
  CHECK(results[0].times().size() == results[1].times().size());
  CHECK(results[0].median() > 0);
  CHECK(bandwidth_limit_us({4096}, 4, 3, 1e-3) > 0);
}

TEST_CASE("the limit is one of the ways to pass over the same arrays") {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    CHECK_NOTHROW(TrafficLimit({5000, 7}, 3, 1).run());
    CHECK_NOTHROW(TrafficLimit({}).run());
  }
  CHECK_THROWS_AS(TrafficLimit({1}, 1, 2), Error);
}
