#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Schedulers of one optimizer; they must outlive it. ReduceLROnPlateau is no
/// LRScheduler, so the compiler refuses it here: its step needs a metric.
using SchedulerList = std::vector<LRScheduler*>;

/// Options of torch.optim.lr_scheduler.SequentialLR.
struct SequentialLROptions {
  SchedulerList schedulers = {};              ///< required
  std::vector<std::int64_t> milestones = {};  ///< ascending, one fewer
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts.
};

/// One scheduler after the other. At each milestone the next one begins, from
/// its epoch 0 and the initial rates:
///
///     LinearLR warmup(opt, {.total_iters = 5});
///     ExponentialLR decay(opt, {.gamma = 0.9});
///     SequentialLR sched(opt, {.schedulers = {&warmup, &decay},
///                              .milestones = {5}});
///
/// Also a SequentialLR or ChainedScheduler may be a part; it begins like any
/// other.
class SequentialLR final : public LRScheduler {
 public:
  /// Throws Error for what torch rejects, and for milestones out of order.
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

/// Several schedulers, all of them at every step:
///
///     ChainedScheduler sched({&constant, &exponential});
class ChainedScheduler final : public LRScheduler {
 public:
  /// Takes the optimizer from the schedulers. Throws Error for what torch
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
