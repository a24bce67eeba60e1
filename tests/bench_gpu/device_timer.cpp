#include "bench_gpu/device_timer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fusebook/bench/benchmark.h"
#include "fusebook/cuda_launch/gpu_event.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

constexpr int most_calls = 20000;
/// A device's queue holds about a thousand launches; who asks for more waits.
constexpr int calls_ahead = 50;
constexpr int most_rounds = 31;

struct Timed {
  std::function<void()> call;
  int calls = 1;
};

class Timer {
 public:
  explicit Timer(std::shared_ptr<Gpu> gpu)
      : gpu_(std::move(gpu)), begin_(gpu_), end_(gpu_) {}

  Timed prepare(const std::function<void()>& call, double block_seconds) {
    Timed timed{call};
    run(timed);  // loads what is loaded late
    const double once = std::max(run(timed).wall, 1e-7);
    timed.calls = int(std::clamp(block_seconds / once, 1.0, 100.0));
    const double each = std::max(run(timed).wall, 1e-7);
    timed.calls =
        int(std::clamp(block_seconds / each, 1.0, double(most_calls)));
    return timed;
  }

  Timing measure(const Timed& timed) {
    Timing timing = run(timed);
    timing.host = run({timed.call, std::min(timed.calls, calls_ahead)}).host;
    return timing;
  }

 private:
  Timing run(const Timed& timed) {
    gpu_->synchronize();
    const double start = steady_seconds();
    begin_.record();
    for (int i = 0; i < timed.calls; ++i) timed.call();
    const double asked = steady_seconds();
    end_.record();
    gpu_->synchronize();
    const double done = steady_seconds();
    const double calls = timed.calls;
    return {(done - start) / calls,
            end_.milliseconds_since(begin_) * 1e-3 / calls,
            (asked - start) / calls};
  }

  std::shared_ptr<Gpu> gpu_;
  GpuEvent begin_;
  GpuEvent end_;
};

void shuffle(std::vector<std::size_t>& order, Generator& generator) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[generator.bits() % i]);
  }
}

}  // namespace

std::vector<std::vector<Timing>> time_in_turns(
    const std::shared_ptr<Gpu>& gpu,
    const std::vector<std::function<void()>>& calls,
    const TimingOptions& options) {
  Timer timer(gpu);
  std::vector<Timed> timed;
  timed.reserve(calls.size());
  for (const auto& call : calls) {
    timed.push_back(timer.prepare(call, options.block_seconds));
  }
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::vector<std::vector<Timing>> timings(calls.size());
  Generator generator(0);
  const double end =
      steady_seconds() + options.seconds_for_each * double(calls.size());
  for (int round = 0; round < most_rounds; ++round) {
    if (round >= options.least_rounds && steady_seconds() > end) break;
    shuffle(order, generator);
    for (const std::size_t i : order) {
      timings[i].push_back(timer.measure(timed[i]));
    }
  }
  return timings;
}

double median_of(std::vector<double> values) {
  return Measurement(1, std::move(values)).median();
}

}  // namespace fuse::bench
