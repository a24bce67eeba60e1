#include "fusebook/bench/benchmark.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <string>

#include "fusebook/bench/quick_times.h"
#include "fusebook/device/backend.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/random.h"

namespace fuse {
namespace {

/// A block is never shorter than the resolution of a clock.
constexpr double shortest_block = 1e-9;
constexpr double most_overhead = 1e-4;
constexpr std::int64_t most_calls = 2147483647;

double time_block(const std::function<void()>& fn, std::int64_t number,
                  const Clock& clock) {
  const double start = clock();
  for (std::int64_t i = 0; i < number; ++i) fn();
  return std::max(clock() - start, shortest_block);
}

double clock_overhead(const std::function<void()>& fn, const Clock& clock) {
  std::vector<double> samples(5);
  for (double& sample : samples) sample = time_block(fn, 0, clock);
  std::sort(samples.begin(), samples.end());
  return samples[2];
}

std::int64_t estimate_block(const std::function<void()>& fn,
                            double min_run_time_s, const Clock& clock) {
  if (times_are_quick()) return 1;
  const double overhead = clock_overhead(fn, clock);
  std::int64_t number = 1;
  while (true) {
    // The first calls find cold caches and sleeping threads.
    double taken = time_block(fn, number, clock);
    if (taken < min_run_time_s) {
      taken = std::min(taken, time_block(fn, number, clock));
    }
    const bool precise =
        overhead / taken <= most_overhead && taken >= min_run_time_s / 1000;
    if (precise || taken > min_run_time_s) return number;
    if (number * 10 > most_calls) return number;
    number *= 10;
  }
}

void check_time(double seconds) {
  if (seconds > 0 && std::isfinite(seconds)) return;
  throw Error(fmt::format(
      "the minimum run time must be a positive number of seconds, not {:f}",
      seconds));
}

void shuffle(std::vector<std::size_t>& order, Generator& generator) {
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[generator.bits() % i]);
  }
}

}  // namespace

Measurement::Measurement(std::int64_t number_per_run,
                         std::vector<double> block_times)
    : number_per_run_(number_per_run), times_(std::move(block_times)) {
  if (times_.empty() || number_per_run_ < 1) {
    throw Error("a measurement needs at least one block of one call");
  }
  for (double& time : times_) time /= double(number_per_run_);
  sorted_ = times_;
  std::sort(sorted_.begin(), sorted_.end());
}

double Measurement::mean() const {
  const std::vector<double>& all = taken().times_;
  return std::accumulate(all.begin(), all.end(), 0.0) / double(all.size());
}

double Measurement::quantile(double fraction) const {
  static_cast<void>(taken());
  const double place =
      std::clamp(fraction, 0.0, 1.0) * double(sorted_.size() - 1);
  const auto below = std::size_t(place);
  const std::size_t above = std::min(below + 1, sorted_.size() - 1);
  return sorted_[below] +
         (place - double(below)) * (sorted_[above] - sorted_[below]);
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double device_seconds() {
  const Device device = default_device();
  backend_of(device).synchronize(device.index);
  return steady_seconds();
}

Measurement blocked_autorange(const std::function<void()>& fn,
                              double min_run_time_s, const Clock& clock) {
  check_callable(fn);
  check_callable(clock, "the clock");
  check_time(min_run_time_s);
  const std::int64_t number = estimate_block(fn, min_run_time_s, clock);
  std::vector<double> times;
  const double wanted = times_are_quick() ? 0 : min_run_time_s;
  double total = 0;
  do {
    times.push_back(time_block(fn, number, clock));
    total += times.back();
  } while (total < wanted);
  return {number, std::move(times)};
}

std::vector<Measurement> interleaved(
    const std::vector<std::function<void()>>& fns,
    const InterleavedOptions& options, const Clock& clock) {
  for (const auto& fn : fns) check_callable(fn, "one of the functions");
  check_callable(clock, "the clock");
  check_time(options.min_run_time_s);
  std::vector<std::int64_t> numbers;
  for (const auto& fn : fns) {
    numbers.push_back(estimate_block(fn, options.min_run_time_s, clock));
  }
  std::vector<std::vector<double>> times(fns.size());
  std::vector<std::size_t> order(fns.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  Generator generator(options.seed);
  const bool once = times_are_quick();
  const int rounds = once ? 1 : options.min_rounds;
  const double wanted = once ? 0 : options.min_run_time_s * double(fns.size());
  double total = 0;
  for (int round = 0; round < rounds || total < wanted; ++round) {
    shuffle(order, generator);
    for (const std::size_t i : order) {
      times[i].push_back(time_block(fns[i], numbers[i], clock));
      total += times[i].back();
    }
  }
  std::vector<Measurement> results;
  for (std::size_t i = 0; i < fns.size(); ++i) {
    results.emplace_back(numbers[i], std::move(times[i]));
  }
  return results;
}

}  // namespace fuse
