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
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;
};
/// Follows a cosine down to `eta_min`, up again, and so on.
using CosineAnnealingLR = ScheduledBy<CosineAnnealingLROptions>;

/// Options of torch.optim.lr_scheduler.CosineAnnealingWarmRestarts, with its
/// defaults.
struct CosineAnnealingWarmRestartsOptions {
  static constexpr const char* name = "CosineAnnealingWarmRestarts";
  std::int64_t T_0 = 0;          ///< required: epochs until the first restart
  std::int64_t T_mult = 1;       ///< Factor on the period after each restart.
  double eta_min = 0;            ///< The smallest rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.
  double T_cur = -1;  ///< kept by the scheduler: epochs since the restart
  double T_i = 0;     ///< likewise: epochs between restarts

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  void advance(std::int64_t epoch);
  /// Moves to any epoch, including fractional ones.
  void jump(double epoch);
  void visit_state(StateFields& fields);
};

// NOLINTEND(readability-identifier-naming)

/// Follows a cosine down to `eta_min`, then jumps back to the initial rate;
/// each period is `T_mult` times as long as the last.
class CosineAnnealingWarmRestarts
    : public ScheduledBy<CosineAnnealingWarmRestartsOptions> {
 public:
  using ScheduledBy::ScheduledBy;
  using ScheduledBy::step;
  /// Moves to an epoch, which may be fractional: epoch + i / iterations. Throws
  /// Error if it is negative.
  void step(double epoch);
};

}  // namespace fuse
