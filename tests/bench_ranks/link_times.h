#pragma once

#include "bench_ranks/link_model.h"
#include "fusebook/distributed/ranks.h"

namespace fuse::bench {

/// Times calls and exchanges as a step makes them, of many sizes and in turns:
/// medians over the rounds. All ranks call it, at least two; what rank 0 read is
/// what counts.
LinkTimes measure_links(Ranks& ranks, int rounds);

}  // namespace fuse::bench
