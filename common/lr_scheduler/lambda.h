#pragma once

#include <cstdint>
#include <functional>

#include "fusebook/lr_scheduler/per_group.h"
#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// A factor for each epoch. It is not part of a scheduler's state.
using LRLambda = std::function<double(std::int64_t epoch)>;

/// Throws Error unless there is one function, or one for each group.
void check_lambdas(const char* scheduler, const PerGroup<LRLambda>& lr_lambda,
                   std::size_t groups);

/// Options of torch.optim.lr_scheduler.LambdaLR.
struct LambdaLROptions {
  static constexpr const char* name = "LambdaLR";
  PerGroup<LRLambda> lr_lambda = {};  ///< required
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const {
    check_lambdas(name, lr_lambda, groups);
  }
  double next_lr(const Moment& now) const {
    return now.base_lr * lr_lambda[now.group](now.epoch);
  }
};
/// The initial rate times a function of the epoch.
using LambdaLR = ScheduledBy<LambdaLROptions>;

/// Options of torch.optim.lr_scheduler.MultiplicativeLR.
struct MultiplicativeLROptions {
  static constexpr const char* name = "MultiplicativeLR";
  PerGroup<LRLambda> lr_lambda = {};  ///< required
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const {
    check_lambdas(name, lr_lambda, groups);
  }
  double next_lr(const Moment& now) const {
    return now.initial ? now.lr : now.lr * lr_lambda[now.group](now.epoch);
  }
};
/// Multiplies the current rate by a function of the epoch.
using MultiplicativeLR = ScheduledBy<MultiplicativeLROptions>;

}  // namespace fuse
