#pragma once

#include <vector>

#include "fusebook/bench/benchmark.h"

namespace fuse::bench {

/// Median seconds of a call of `timed`, with `before` run in front of each.
template <class Before, class Timed>
double median_after(const Before& before, const Timed& timed) {
  constexpr int rounds = 41;
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    before();
    const double begin = steady_seconds();
    timed();
    times.push_back(steady_seconds() - begin);
  }
  return Measurement(1, times).median();
}

}  // namespace fuse::bench
