#pragma once

#include <cstdint>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.ConstantLR, with its defaults.
struct ConstantLROptions {
  static constexpr const char* name = "ConstantLR";
  double factor = 1.0 / 3;       ///< Factor on the rate until `total_iters`.
  std::int64_t total_iters = 5;  ///< Length of the schedule, in epochs.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  /// Throws Error at `total_iters` if the factor is 0, which cannot be undone.
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;
};
/// Multiplies the rate by `factor` and restores it at epoch `total_iters`.
using ConstantLR = ScheduledBy<ConstantLROptions>;

/// Options of torch.optim.lr_scheduler.LinearLR, with its defaults.
struct LinearLROptions {
  static constexpr const char* name = "LinearLR";
  double start_factor = 1.0 / 3;  ///< Factor on the rate at the beginning.
  double end_factor = 1.0;        ///< Factor on the rate at the end.
  /// If 0, the rate stays at `start_factor`, as in torch.
  std::int64_t total_iters = 5;
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const {
    return now.base_lr * start_factor;
  }
};
/// Multiplies the rate by a factor that goes from `start_factor` to
/// `end_factor` within `total_iters` epochs.
using LinearLR = ScheduledBy<LinearLROptions>;

/// Options of torch.optim.lr_scheduler.PolynomialLR, with its defaults.
struct PolynomialLROptions {
  static constexpr const char* name = "PolynomialLR";
  std::int64_t total_iters = 5;  ///< Length of the schedule, in epochs.
  double power = 1.0;            ///< Exponent of the decay.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const { return now.base_lr; }
};
/// Multiplies the rate by (1 - epoch / total_iters) to the given power.
using PolynomialLR = ScheduledBy<PolynomialLROptions>;

}  // namespace fuse
