#pragma once

#include "fusebook/distributed/ranks.h"

namespace fuse::bench {

/// What can be gained by computing while bytes travel: medians.
struct Overlap {
  double exchange_us = 0;  ///< an exchange of many bytes
  double work_us = 0;      ///< computing in registers, for about as long
  double both_us = 0;  ///< the exchange is begun, then computed, then awaited
};

/// All ranks call it, at least two.
Overlap measure_overlap(Ranks& ranks, int rounds);

}  // namespace fuse::bench
