#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.StepLR, with its defaults.
struct StepLROptions {
  static constexpr const char* name = "StepLR";
  std::int64_t step_size = 0;    ///< required
  double gamma = 0.1;            ///< Factor on the rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const {
    return now.epoch == 0 || now.epoch % step_size != 0 ? now.lr
                                                        : now.lr * gamma;
  }
  double restart_lr(const Moment& now) const { return now.base_lr; }
};
/// Multiplies the rate by `gamma` every `step_size` epochs.
using StepLR = ScheduledBy<StepLROptions>;

/// Options of torch.optim.lr_scheduler.MultiStepLR, with its defaults.
struct MultiStepLROptions {
  static constexpr const char* name = "MultiStepLR";
  /// Required, in ascending order; a milestone listed twice counts twice.
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;            ///< Factor on the rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;
};
/// Multiplies the rate by `gamma` at each milestone.
using MultiStepLR = ScheduledBy<MultiStepLROptions>;

/// Options of torch.optim.lr_scheduler.ExponentialLR.
struct ExponentialLROptions {
  static constexpr const char* name = "ExponentialLR";
  double gamma = std::numeric_limits<double>::quiet_NaN();  ///< required
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const {
    return now.initial ? now.lr : now.lr * gamma;
  }
  double restart_lr(const Moment& now) const { return now.base_lr; }
};
/// Multiplies the rate by `gamma` every epoch.
using ExponentialLR = ScheduledBy<ExponentialLROptions>;

}  // namespace fuse
