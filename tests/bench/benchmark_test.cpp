#include "fusebook/bench/benchmark.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fusebook/bench/quick_times.h"
#include "fusebook/support/error.h"
#include "support/jit_testing.h"

using namespace fuse;

namespace {

/// Time that passes only when a test says so. Reading it may cost some, too.
struct FakeTime {
  double now = 100;
  double reading = 0;
  int readings = 0;

  Clock clock() {
    return [this] {
      ++readings;
      now += reading;
      return now;
    };
  }
};

}  // namespace

TEST_CASE("statistics by hand") {
  // Blocks of two calls: 1, 2, 3, 4 and 10 seconds a call.
  const Measurement result(2, {6, 2, 20, 8, 4});
  CHECK(result.number_per_run() == 2);
  CHECK(result.times() == std::vector<double>{3, 1, 10, 4, 2});
  CHECK(result.mean() == 4);
  CHECK(result.median() == 3);
  CHECK(result.iqr() == 2);
  CHECK(result.mean_us() == 4e6);
  CHECK(result.median_us() == 3e6);
  CHECK(result.iqr_us() == 2e6);
  CHECK(result.quantile(0) == 1);
  CHECK(result.quantile(1) == 10);
}

TEST_CASE("quick times are those of one call each") {
  const jit_testing::Env quick("FUSEBOOK_QUICK", "1");
  FakeTime time;
  int calls = 0;
  const auto fn = [&] {
    ++calls;
    time.now += 0.001;
  };
  const Measurement one = blocked_autorange(fn, 0.2, time.clock());
  CHECK(calls == 1);
  CHECK(one.number_per_run() == 1);
  CHECK(one.times().size() == 1);
  CHECK(one.median() == doctest::Approx(0.001));
  const auto both = interleaved({fn, fn}, {}, time.clock());
  CHECK(calls == 3);
  CHECK(both.at(1).times().size() == 1);
  CHECK(both[1].median() == doctest::Approx(0.001));
}

TEST_CASE("times are quick where FUSEBOOK_QUICK is 1") {
  for (const auto& [value, quick] :
       {std::pair{"1", true}, std::pair{"0", false}, std::pair{"", false}}) {
    const jit_testing::Env variable("FUSEBOOK_QUICK", value);
    CHECK(times_are_quick() == quick);
  }
  const jit_testing::Env variable("FUSEBOOK_QUICK", "yes");
  CHECK_THROWS_WITH_AS(
      times_are_quick(),
      "FUSEBOOK_QUICK is 'yes', which is neither 1 nor 0: set it "
      "to 1 to time everything once, or unset it",
      UsageError);
}

TEST_CASE("quantiles lie linearly between neighbours") {
  const Measurement result(1, {4, 1, 2, 3});
  CHECK(result.median() == 2.5);
  CHECK(result.quantile(0.25) == 1.75);
  CHECK(result.iqr() == 1.5);
  CHECK(Measurement(1, {5}).median() == 5);
  CHECK(Measurement(1, {5}).iqr() == 0);
  CHECK_THROWS_AS(Measurement(1, {}), Error);
  CHECK_THROWS_AS(Measurement(0, {1}), Error);
}

TEST_CASE("a slow function runs one call a block") {
  FakeTime time;
  int calls = 0;
  const Measurement result = blocked_autorange(
      [&] {
        ++calls;
        time.now += 0.0625;
      },
      0.2, time.clock());
  CHECK(result.number_per_run() == 1);
  // Four sixteenths fill 0.2 s; two more calls found the block size.
  CHECK(result.times() == std::vector<double>(4, 0.0625));
  CHECK(calls == 6);
}

TEST_CASE("a fast function is called often enough for the clock") {
  FakeTime time;
  const double call = 0x1p-20;  // About a microsecond, and exact in sums.
  const Measurement result =
      blocked_autorange([&] { time.now += call; }, 0.2, time.clock());
  // Blocks of 1, 10 and 100 calls last less than 0.2 ms, 1000 last 0.95 ms.
  CHECK(result.number_per_run() == 1000);
  CHECK(result.median() == call);
  CHECK(result.iqr() == 0);
  const double filled = double(result.times().size()) * 1000 * call;
  CHECK(filled >= 0.2);
  CHECK(filled - 1000 * call < 0.2);
}

TEST_CASE("a first call that finds cold caches does not decide") {
  FakeTime time;
  const double call = 0x1p-20;
  double cold = 0x1p-9;  // 2 ms, which would do for a block
  const Measurement result = blocked_autorange(
      [&] {
        time.now += call + cold;
        cold = 0;
      },
      0.2, time.clock());
  CHECK(result.number_per_run() == 1000);
  CHECK(result.median() == call);
}

TEST_CASE("a slow clock asks for longer blocks") {
  FakeTime time;
  time.reading = 0x1p-17;  // 7.6 us: a block must last 76 ms.
  const double call = 0x1p-20;
  const Measurement result =
      blocked_autorange([&] { time.now += call; }, 0.2, time.clock());
  CHECK(result.number_per_run() == 100000);
}

TEST_CASE("a block that fills the whole time is long enough") {
  FakeTime time;
  time.reading = 1;  // No block could ever be precise.
  int calls = 0;
  const Measurement result = blocked_autorange(
      [&] {
        ++calls;
        time.now += 1;
      },
      0.2, time.clock());
  CHECK(result.number_per_run() == 1);
  CHECK(calls == 2);
}

TEST_CASE("impossible run times") {
  for (const double seconds : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    CHECK_THROWS_AS(blocked_autorange([] {}, seconds), Error);
    InterleavedOptions options;
    options.min_run_time_s = seconds;
    CHECK_THROWS_AS(interleaved({[] {}}, options), Error);
  }
}

TEST_CASE("interleaved functions take turns") {
  FakeTime time;
  std::string order;
  const auto function = [&](char name, double seconds) {
    return [&, name, seconds] {
      order += name;
      time.now += seconds;
    };
  };
  InterleavedOptions options;
  options.min_run_time_s = 0.25;
  options.min_rounds = 12;
  const auto results =
      interleaved({function('a', 0.5), function('b', 0.25), function('c', 1.0)},
                  options, time.clock());
  REQUIRE(results.size() == 3);
  CHECK(results[0].times() == std::vector<double>(12, 0.5));
  CHECK(results[1].times() == std::vector<double>(12, 0.25));
  CHECK(results[2].times() == std::vector<double>(12, 1.0));
  // Behind the calls that found the block sizes every round has each once.
  REQUIRE(order.size() >= 36);
  const std::string rounds = order.substr(order.size() - 36);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < rounds.size(); i += 3) {
    const std::string round = rounds.substr(i, 3);
    CHECK(std::set<char>(round.begin(), round.end()).size() == 3);
    seen.insert(round);
  }
  CHECK(seen.size() > 1);
}

TEST_CASE("interleaved goes on until the time is filled") {
  FakeTime time;
  InterleavedOptions options;
  options.min_run_time_s = 1;
  options.min_rounds = 2;
  const auto results =
      interleaved({[&] { time.now += 0.125; }, [&] { time.now += 0.375; }},
                  options, time.clock());
  // Two seconds in all, half a second a round.
  CHECK(results[0].times().size() == 4);
  CHECK(results[1].times().size() == 4);
  CHECK(interleaved({}, options, time.clock()).empty());
}

TEST_CASE("the system's clock moves forward") {
  const double start = steady_seconds();
  double now = start;
  while (now == start) now = steady_seconds();
  CHECK(now > start);
}
