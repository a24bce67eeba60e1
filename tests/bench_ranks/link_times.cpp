#include "bench_ranks/link_times.h"

#include <algorithm>
#include <functional>
#include <span>

#include "bench_ranks/together.h"
#include "fusebook/bench/benchmark.h"

namespace fuse::bench {
namespace {

constexpr std::int64_t smallest = 256;
constexpr std::int64_t largest = std::int64_t(1) << 26;

// Memory that no cache holds: each exchange takes the next of it, as gradients and
// parameters are far apart in a step.
class Memory {
 public:
  Memory() : bytes_(std::size_t(2 * largest)) {}

  std::span<std::byte> next(std::size_t count) {
    if (place_ + count > bytes_.size()) place_ = 0;
    place_ += count;
    return std::span(bytes_).subspan(place_ - count, count);
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t place_ = 0;
};

// One of the exchanges of a step: a part for each rank, or the same for everybody.
class Exchanges {
 public:
  explicit Exchanges(Ranks& ranks) : ranks_(ranks) {}

  void exchange(const ExchangeTime& one) {
    const auto count = std::size_t(ranks_.size());
    const auto me = std::size_t(ranks_.rank());
    const auto part = std::size_t(one.bytes) / (count - 1);
    const auto arriving = in_.next(part * count);
    const bool to_everybody = one.pattern == "parameters";
    const auto sent = to_everybody ? arriving.subspan(me * part, part)
                                   : out_.next(part * count);
    std::vector<std::vector<std::span<std::byte>>> in(count);
    std::vector<std::vector<std::span<const std::byte>>> out(count);
    for (std::size_t r = 0; r < count; ++r) {
      if (r == me) continue;
      in[r] = {arriving.subspan(r * part, part)};
      out[r] = {to_everybody ? sent : sent.subspan(r * part, part)};
    }
    ranks_.exchange_stretches(out, in, &RankTraffic::gradients);
  }

 private:
  Ranks& ranks_;
  Memory out_;
  Memory in_;
};

int calls_in_a_block(std::int64_t bytes) {
  return int(std::clamp<std::int64_t>((1 << 23) / bytes, 2, 100));
}

double median_us(const std::vector<double>& seconds) {
  return Measurement(1, seconds).median_us();
}

}  // namespace

LinkTimes measure_links(Ranks& ranks, int rounds) {
  LinkTimes found;
  found.ranks = ranks.size();
  for (std::int64_t bytes = smallest; bytes <= largest; bytes *= 4) {
    // Each rank sends as much as to every other.
    const std::int64_t sent = bytes / (ranks.size() - 1) * (ranks.size() - 1);
    found.exchanges.push_back({"gradients", sent});
    found.exchanges.push_back({"parameters", sent});
  }
  Exchanges all(ranks);
  std::vector<double> calls;
  std::vector<std::vector<double>> exchanges(found.exchanges.size());
  for (int round = 0; round < rounds; ++round) {
    calls.push_back(
        seconds_together(ranks, 100, [&] { begin_together(ranks); }));
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      const ExchangeTime& one = found.exchanges[i];
      exchanges[i].push_back(seconds_together(
          ranks, calls_in_a_block(one.bytes), [&] { all.exchange(one); }));
    }
  }
  found.call_us = median_us(calls);
  for (std::size_t i = 0; i < exchanges.size(); ++i) {
    found.exchanges[i].us = median_us(exchanges[i]);
  }
  return found;
}

}  // namespace fuse::bench
