#pragma once

#include <cstdint>
#include <string>

#include "fusebook/lr_scheduler/per_group.h"
#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.swa_utils.SWALR, with its defaults.
struct SWALROptions {
  static constexpr const char* name = "SWALR";
  PerGroup<double> swa_lr = {};         ///< required: the rate it ends with
  std::int64_t anneal_epochs = 10;      ///< Epochs until then.
  std::string anneal_strategy = "cos";  ///< or "linear"
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  double next_lr(const Moment& now) const;
  double restart_lr(const Moment& now) const;

 private:
  double share(std::int64_t epoch) const;
  double between(double begin, double end, std::int64_t epoch) const;
};
/// Moves the rate to one at which weights are averaged, and leaves it there.
using SWALR = ScheduledBy<SWALROptions>;

}  // namespace fuse
