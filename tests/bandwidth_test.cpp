#include "bandwidth.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "allocator.h"
#include "benchmark.h"
#include "error.h"
#include "parallel.h"

using namespace fuse;

namespace {

const std::vector<std::int64_t> mixed{1000, 0, 1, 15, 16, 17, 70000, 3};

}  // namespace

TEST_CASE("bytes of one pass") {
  CHECK(AccessPattern({1024, 1024}).bytes() == 2048 * 4 * 7);
  CHECK(AccessPattern({10}, 2, 1).bytes() == 10 * 4 * 3);
  CHECK(AccessPattern({}).bytes() == 0);
}

TEST_CASE("a pass adds the arrays it reads into those it writes") {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    const AccessPattern pattern(mixed, 3, 2);
    for (std::size_t t = 0; t < mixed.size(); ++t) {
      for (std::size_t k = 0; k < 3; ++k) {
        Tensor array = pattern.array(k, t);
        for (std::int64_t i = 0; i < mixed[t]; ++i) {
          array.data<float>()[i] = float(i % 7) + float(10 * k);
        }
      }
    }
    pattern.run();
    long wrong = 0;
    for (std::size_t t = 0; t < mixed.size(); ++t) {
      const std::vector<double> first = pattern.array(0, t).to_vector();
      const std::vector<double> second = pattern.array(1, t).to_vector();
      const std::vector<double> third = pattern.array(2, t).to_vector();
      for (std::size_t i = 0; i < first.size(); ++i) {
        const double sum = 3 * double(i % 7) + 30;
        wrong += first[i] == sum && second[i] == sum ? 0 : 1;
        wrong += third[i] == double(i % 7) + 20 ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
  set_thread_count(0);
}

// Where a base lies is the pattern's secret: ones become threes in a stretch
// that is as long as the tensor.
TEST_CASE("staggered bases and wider loads cover each tensor, too") {
  using Bases = AccessPattern::Bases;
  using Width = AccessPattern::Width;
  for (const Bases bases : {Bases::allocated, Bases::staggered}) {
    for (const Width width : {Width::bytes32, Width::bytes64}) {
      const AccessPattern pattern(mixed, 3, 2, bases);
      for (std::size_t t = 0; t < mixed.size(); ++t) {
        for (std::size_t k = 0; k < 3; ++k) {
          Tensor array = pattern.array(k, t);
          std::fill_n(array.data<float>(), array.numel(), 1.0F);
        }
      }
      pattern.run(width);
      for (std::size_t t = 0; t < mixed.size(); ++t) {
        for (std::size_t k = 0; k < 3; ++k) {
          const std::vector<double> now = pattern.array(k, t).to_vector();
          const auto threes = std::count(now.begin(), now.end(), 3.0);
          const auto ones = std::count(now.begin(), now.end(), 1.0);
          CHECK(threes == (k < 2 ? mixed[t] : 0));
          CHECK(ones + threes == std::ptrdiff_t(now.size()));
          const auto first = std::find(now.begin(), now.end(), 3.0);
          if (threes > 0)
            CHECK(std::count(first, first + threes, 3.0) == threes);
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
    for (int writes = 1; writes <= reads; ++writes) {
      AccessPattern({33}, reads, writes).run();
    }
  }
  CHECK_THROWS_AS(AccessPattern({1}, 4, 5), Error);
  CHECK_THROWS_AS(AccessPattern({1}, 4, 0), Error);
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
