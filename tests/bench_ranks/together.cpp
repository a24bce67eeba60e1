#include "bench_ranks/together.h"

#include "fusebook/bench/benchmark.h"

namespace fuse::bench {

void begin_together(Ranks& ranks) {
  ranks.agree({"bench", std::source_location::current(), {}});
}

double seconds_together(Ranks& ranks, int count,
                        const std::function<void()>& call) {
  begin_together(ranks);
  const double begin = steady_seconds();
  for (int i = 0; i < count; ++i) call();
  return (steady_seconds() - begin) / count;
}

}  // namespace fuse::bench
