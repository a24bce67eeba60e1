#pragma once

#include <cstdint>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.ConstantLR, with its defaults.
struct ConstantLROptions {
  static constexpr const char* name = "ConstantLR";
  double factor = 1.0 / 3;       ///< Of the rate, until `total_iters`.
  std::int64_t total_iters = 5;  ///< Epochs that the schedule takes.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.

  void validate(std::size_t groups) const;
  /// Throws Error at `total_iters` for a factor of 0: there is no way back.
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;
};
/// The rate times `factor` until epoch `total_iters`, which takes it back.
using ConstantLR = ScheduledBy<ConstantLROptions>;

/// Options of torch.optim.lr_scheduler.LinearLR, with its defaults.
struct LinearLROptions {
  static constexpr const char* name = "LinearLR";
  double start_factor = 1.0 / 3;  ///< Of the rate, at the beginning.
  double end_factor = 1.0;        ///< Of the rate, at the end.
  /// With 0 the rate stays at `start_factor`, as in torch.
  std::int64_t total_iters = 5;
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const {
    return now.base_lr * start_factor;
  }
};
/// The rate times a factor that goes from `start_factor` to `end_factor` within
/// `total_iters` epochs.
using LinearLR = ScheduledBy<LinearLROptions>;

/// Options of torch.optim.lr_scheduler.PolynomialLR, with its defaults.
struct PolynomialLROptions {
  static constexpr const char* name = "PolynomialLR";
  std::int64_t total_iters = 5;  ///< Epochs that the schedule takes.
  double power = 1.0;            ///< Exponent of the decay.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const { return now.base_lr; }
};
/// The rate times (1 - epoch / total_iters) to the given power.
using PolynomialLR = ScheduledBy<PolynomialLROptions>;

}  // namespace fuse
