#pragma once

#include <cstdint>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

// T_max, T_0 and T_mult are torch's names.
// NOLINTBEGIN(readability-identifier-naming)

/// Options of torch.optim.lr_scheduler.CosineAnnealingLR, with its defaults.
struct CosineAnnealingLROptions {
  static constexpr const char* name = "CosineAnnealingLR";
  std::int64_t T_max =
      0;               ///< required: epochs from the largest to the smallest
  double eta_min = 0;  ///< The smallest rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;
};
/// Down along a cosine to `eta_min`, up again, and so on.
using CosineAnnealingLR = ScheduledBy<CosineAnnealingLROptions>;

/// Options of torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, with its
/// defaults.
struct CosineAnnealingWarmRestartsOptions {
  static constexpr const char* name = "CosineAnnealingWarmRestarts";
  std::int64_t T_0 = 0;          ///< required: epochs until the first restart
  std::int64_t T_mult = 1;       ///< What the period is multiplied by.
  double eta_min = 0;            ///< The smallest rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.
  double T_cur = -1;  ///< counted by the scheduler: epochs since the restart
  double T_i = 0;     ///< likewise: epochs between the two restarts

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  void advance(std::int64_t epoch);
  /// Moves to any epoch, also between two.
  void jump(double epoch);
  void visit_state(StateFields& fields);
};

// NOLINTEND(readability-identifier-naming)

/// Down along a cosine to `eta_min`, then at once back to the initial rate;
/// each time it takes `T_mult` times as long.
class CosineAnnealingWarmRestarts
    : public ScheduledBy<CosineAnnealingWarmRestartsOptions> {
 public:
  using ScheduledBy::ScheduledBy;
  using ScheduledBy::step;
  /// Goes to an epoch, which may lie between two: epoch + i / iterations.
  /// Throws Error if it is negative.
  void step(double epoch);
};

}  // namespace fuse
