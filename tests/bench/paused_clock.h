#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fusebook/bench/benchmark.h"
#include "fusebook/runtime/parallel.h"

namespace fuse::bench {

/// One of several ways to go through a training loop: `prepare` stands for what
/// happens between two steps and is not timed, `step` is.
struct Loop {
  std::string name;
  std::function<void()> prepare;
  std::function<void()> step;
};

/// A clock that stands still while something else is done.
class PausedClock {
 public:
  double seconds() const { return steady_seconds() - paused_; }
  template <class F>
  void pause_for(const F& other) {
    const double begin = steady_seconds();
    other();
    paused_ += steady_seconds() - begin;
  }

 private:
  double paused_ = 0;
};

/// Microseconds of a step of each loop, measured in turns: the fastest tenth of
/// the runs, because what the system does in between only ever adds. A run is some
/// steps in a row, as in a training loop; the first ones, which find the caches
/// full of other loops, are not timed. The pool's threads are awake when a step
/// begins, as they are after a backward pass.
inline std::vector<double> measure_loops(const std::vector<Loop>& loops) {
  constexpr int not_timed = 3;
  constexpr int timed = 10;
  PausedClock clock;
  std::vector<std::function<void()>> runs;
  runs.reserve(loops.size());
  for (const Loop& loop : loops) {
    const auto prepare = [&loop] {
      loop.prepare();
      parallel_run(thread_count(), [](int) {});
    };
    runs.emplace_back([&clock, &loop, prepare] {
      clock.pause_for([&loop, prepare] {
        for (int i = 0; i < not_timed; ++i) {
          prepare();
          loop.step();
        }
      });
      for (int i = 0; i < timed; ++i) {
        clock.pause_for(prepare);
        loop.step();
      }
    });
  }
  const auto measured =
      interleaved(runs, {.min_run_time_s = 0.1, .min_rounds = 15},
                  [&clock] { return clock.seconds(); });
  std::vector<double> us;
  us.reserve(measured.size());
  for (const Measurement& one : measured) {
    us.push_back(one.quantile(0.1) * 1e6 / timed);
  }
  return us;
}

}  // namespace fuse::bench
