#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/ops/dtype.h"

namespace fuse {

/// A step of `ShardedOptimizer` as far as what it sends depends on it.
struct PlannedStep {
  /// Micro-gradients of all ranks together, one `add_gradients` for each.
  std::int64_t micro_gradients = 1;
  /// Each rank lets its own add up before it calls `add_gradients`, once.
  bool adds_up = false;
  bool clips = false;            ///< by `ShardedStep::max_norm`
  bool skips_nonfinite = false;  ///< as `ShardedStep::skip_nonfinite`
  /// As `ShardedOptimizer::send_gradients_as`.
  std::optional<DType> gradients_as = {};

  /// Gradients that travel.
  std::int64_t gradients(int ranks) const;
  /// How often all ranks call `add_gradients`, the last time perhaps not all.
  std::int64_t rounds(int ranks) const;
};

/// What the ranks send in a step, computed from sizes alone: for any number of
/// ranks, without MPI. All parameters have gradients, in their own dtype.
class StepTraffic {
 public:
  /// `shares` are those of `make_shares` for as many ranks, and `dtypes` those of
  /// the parameters.
  StepTraffic(const std::vector<Share>& shares,
              const std::vector<DType>& dtypes, int ranks);

  /// What `Ranks::traffic` of this rank grows by.
  RankTraffic of(const PlannedStep& step, int rank) const;
  /// Bytes of this rank's shares of the parameters.
  std::int64_t own_bytes(int rank) const;

 private:
  // The shares of a rank, on their way to another one.
  struct Load {
    std::int64_t bytes = 0;
    std::int64_t messages = 0;
  };
  std::vector<Load> loads(std::optional<DType> sent_as) const;

  int ranks_;
  std::vector<Share> shares_;
  std::vector<DType> dtypes_;
  std::vector<std::int64_t> chunks_;  // in the shares of each rank
  std::vector<Load> params_;
};

}  // namespace fuse
