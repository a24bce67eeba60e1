#include "bench_ranks/link_model.h"

#include <doctest/doctest.h>

#include "fusebook/support/error.h"

using namespace fuse;
using namespace fuse::bench;

namespace {

std::vector<ExchangeTime> on_a_line(double first, double each) {
  std::vector<ExchangeTime> times;
  for (std::int64_t bytes = 256; bytes <= 1 << 20; bytes *= 16) {
    times.push_back({"gradients", bytes, first + each * double(bytes)});
  }
  return times;
}

}  // namespace

TEST_CASE("messages that wait for each other") {
  CHECK(messages_in_a_call(1) == 0);
  CHECK(messages_in_a_call(2) == 1);
  CHECK(messages_in_a_call(3) == 2);
  CHECK(messages_in_a_call(4) == 2);
  CHECK(messages_in_a_call(4096) == 12);
  CHECK(messages_in_an_exchange(1) == 0);
  CHECK(messages_in_an_exchange(7) == 6);
}

TEST_CASE("points on a line give that line") {
  const Line line = fit_line(on_a_line(12, 0.25));
  CHECK(line.first == doctest::Approx(12));
  CHECK(line.each == doctest::Approx(0.25));
}

TEST_CASE("a small time counts as much as a large one") {
  auto times = on_a_line(12, 0.25);
  times.back().us *= 1.1;
  const Line line = fit_line(times);
  CHECK(line.first == doctest::Approx(12).epsilon(0.25));
  times = on_a_line(12, 0.25);
  times.front().us *= 1.1;
  CHECK(fit_line(times).each == doctest::Approx(0.25).epsilon(0.1));
}

TEST_CASE("no number is negative") {
  const Line no_latency = fit_line({{"", 100, 1}, {"", 1000, 100}});
  CHECK(no_latency.first == 0);
  CHECK(no_latency.each > 0);
  const Line no_bytes = fit_line({{"", 100, 100}, {"", 1000, 50}});
  CHECK(no_bytes.first > 0);
  CHECK(no_bytes.each == 0);
}

TEST_CASE("one size is no line") {
  CHECK_THROWS_AS(fit_line({{"", 100, 1}, {"", 100, 2}}), Error);
  CHECK_THROWS_AS(fit_line({{"", 100, 1}}), Error);
}

TEST_CASE("the model is fitted to what it then says") {
  const LinkModel model = fit_links({4, 6, on_a_line(30, 0.5)});
  CHECK(model.call_us == doctest::Approx(3));
  CHECK(model.exchange_us == doctest::Approx(10));
  CHECK(model.exchange(1000, 4) == doctest::Approx(530));
  CHECK(model.exchange(1000, 8) == doctest::Approx(7 * 10 + 500));
}

TEST_CASE("a step is its calls, its exchanges and its bytes") {
  const LinkModel model = {2, 5, 0.1};
  const RankTraffic sent = {.gradients = 1000,
                            .parameters = 200,
                            .sums = 30,
                            .agreement = 4,
                            .states = 1 << 20,
                            .calls = 10,
                            .exchanges = 3};
  CHECK(model.us(sent, 5) ==
        doctest::Approx(10 * 3 * 2 + 3 * 4 * 5 + 0.1 * 1234));
  CHECK(model.us(sent, 1) == doctest::Approx(0.1 * 1234));
}
