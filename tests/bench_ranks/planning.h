#pragma once

#include <cstdint>

#include "bench/cases.h"
#include "bench_ranks/link_model.h"
#include "fusebook/distributed/step_traffic.h"

namespace fuse::bench {

/// What ranks are expected to need for a step.
struct Expected {
  RankTraffic sent;            ///< of the rank that is busy longest
  std::int64_t owned = 0;      ///< elements of the largest share
  std::int64_t gradients = 0;  ///< that each owner adds
  double transport_us = 0;
  double own_us = 0;  ///< the step of the largest share, at the memory's limit
};

/// Computed from the sizes of the case and the model's numbers.
Expected expected_step(const Case& wanted, const PlannedStep& plan, int ranks,
                       const LinkModel& link, double memory_bytes_per_us);

}  // namespace fuse::bench
