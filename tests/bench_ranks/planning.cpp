#include "bench_ranks/planning.h"

#include "bench_ranks/step_times.h"

namespace fuse::bench {

Expected expected_step(const Case& wanted, const PlannedStep& plan, int ranks,
                       const LinkModel& link, double memory_bytes_per_us) {
  const auto shares = shares_of(wanted, ranks);
  const StepTraffic traffic(
      shares, std::vector<DType>(wanted.sizes.size(), DType::float32), ranks);
  Expected found;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankTraffic sent = traffic.of(plan, rank);
    const double us = link.us(sent, ranks);
    if (rank > 0 && us <= found.transport_us) continue;
    found.sent = sent;
    found.transport_us = us;
  }
  found.owned = largest_share(shares, ranks);
  found.gradients = plan.gradients(ranks);
  found.own_us = double(found.owned * bytes_per_element(found.gradients)) /
                 memory_bytes_per_us;
  return found;
}

}  // namespace fuse::bench
