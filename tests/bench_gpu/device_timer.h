#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fusebook/cuda/gpu.h"

namespace fuse::bench {

/// Seconds a call in one round.
struct Timing {
  double wall = 0;
  double events = 0;
  double host = 0;
};

/// How long `time_in_turns` measures.
struct TimingOptions {
  double block_seconds = 0.02;  ///< of the calls that are waited for at once
  int least_rounds = 9;
  double seconds_for_each = 1;  ///< more rounds, until this is filled
};

/// Timings of several functions, by function and round. In each round every
/// function runs one block, in a new random order, so that a drift of the
/// machine meets all of them. A block asks the device for many calls and waits
/// once.
std::vector<std::vector<Timing>> time_in_turns(
    const std::shared_ptr<Gpu>& gpu,
    const std::vector<std::function<void()>>& calls,
    const TimingOptions& options = {});

/// The median of one number of each.
double median_of(std::vector<double> values);

}  // namespace fuse::bench
