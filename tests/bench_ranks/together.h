#pragma once

#include <functional>

#include "fusebook/distributed/ranks.h"

namespace fuse::bench {

/// Waits for all ranks.
void begin_together(Ranks& ranks);

/// Seconds of one of `count` calls, which all ranks begin together.
double seconds_together(Ranks& ranks, int count,
                        const std::function<void()>& call);

}  // namespace fuse::bench
