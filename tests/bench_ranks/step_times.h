#pragma once

#include <cstdint>

#include "bench/cases.h"
#include "fusebook/distributed/step_traffic.h"

namespace fuse::bench {

/// A step that was measured on some number of ranks.
struct StepTime {
  int ranks = 1;
  PlannedStep plan;
  double us = 0;           ///< all calls of the step, transport included
  double limit_us = 0;     ///< a loop that moves its bytes of the largest share
  std::int64_t owned = 0;  ///< elements of that share
  RankTraffic sent;        ///< of rank 0, which is what was planned
};

/// Bytes that a step of Adam moves for each element that a rank owns: parameter
/// and averages are read and written, and each gradient that arrives is read.
std::int64_t bytes_per_element(std::int64_t gradients);

/// Bytes that a loop over the shares moves in a microsecond, on each rank while
/// all of them do so.
double measure_memory(Ranks& ranks, const Case& wanted, int rounds);

/// Times steps of Adam that `ranks` share. All of them call it. Throws Error if a
/// rank sends something else than planned.
StepTime measure_step(Ranks& ranks, const Case& wanted, const PlannedStep& plan,
                      int rounds, double memory_bytes_per_us);

/// The shares of a case.
std::vector<Share> shares_of(const Case& wanted, int ranks);
/// The elements of the largest share.
std::int64_t largest_share(const std::vector<Share>& shares, int ranks);

}  // namespace fuse::bench
