#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Schedulers of one optimizer; they must outlive the list. ReduceLROnPlateau
/// is not an LRScheduler, so it does not compile here: its step needs a metric.
using SchedulerList = std::vector<LRScheduler*>;

/// Options of torch.optim.lr_scheduler.SequentialLR.
struct SequentialLROptions {
  SchedulerList schedulers = {};  ///< required
  /// ascending, one fewer than schedulers
  std::vector<std::int64_t> milestones = {};
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.
};

/// Runs one scheduler after another. At each milestone the next one starts, at
/// its epoch 0 and from the initial rates:
///
///     LinearLR warmup(opt, {.total_iters = 5});
///     ExponentialLR decay(opt, {.gamma = 0.9});
///     SequentialLR sched(opt, {.schedulers = {&warmup, &decay},
///                              .milestones = {5}});
///
/// A part may itself be a SequentialLR or ChainedScheduler; it starts like any
/// other.
class SequentialLR final : public LRScheduler {
 public:
  /// Throws Error for anything torch rejects, and for milestones out of order.
  SequentialLR(Optimizer& optimizer, SequentialLROptions options);

  std::string name() const override { return "SequentialLR"; }
  void step() override;
  void take_in_groups() override;
  void undo() override;
  void initial_step() override;
  void restart() override;

 protected:
  std::vector<SchedulerBase*> parts() const override;

 private:
  std::size_t part_at(std::int64_t epoch) const;

  SchedulerList schedulers_;
  std::vector<std::int64_t> milestones_;
};

/// Runs several schedulers together, all at every step:
///
///     ChainedScheduler sched({&constant, &exponential});
class ChainedScheduler final : public LRScheduler {
 public:
  /// Takes the optimizer from the schedulers. Throws Error for anything torch
  /// rejects.
  explicit ChainedScheduler(SchedulerList schedulers);

  std::string name() const override { return "ChainedScheduler"; }
  void step() override;
  void take_in_groups() override;
  void undo() override;
  void initial_step() override;
  void restart() override;

 protected:
  std::vector<SchedulerBase*> parts() const override;

 private:
  SchedulerList schedulers_;
};

}  // namespace fuse
