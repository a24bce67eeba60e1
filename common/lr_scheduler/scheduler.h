#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/lr_scheduler/state.h"
#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// The base of every scheduler, including ReduceLROnPlateau. A scheduler refers
/// to its optimizer, which must outlive it. It writes a hyper-parameter only
/// through Scalar::assign: in place into a 0-d tensor, never replacing the
/// tensor, so a compiled step that reads the tensor stays valid.
///
/// All arithmetic is in float64 and starts from the rate the optimizer actually
/// uses, read back at every step, so several schedulers and changes from
/// outside combine. A float32 tensor therefore rounds once per step, when it is
/// written; a float64 tensor or a plain number gives the digits of torch's
/// schedulers on a float.
class SchedulerBase {
 public:
  virtual ~SchedulerBase();
  SchedulerBase(const SchedulerBase&) = delete;
  SchedulerBase& operator=(const SchedulerBase&) = delete;

  /// The name in torch.optim.lr_scheduler.
  virtual std::string name() const = 0;
  /// The rates after the last step, one per group, as set in the optimizer.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  /// Number of steps made; 0 after construction.
  std::int64_t last_epoch() const { return last_epoch_; }
  /// The optimizer whose rates it moves.
  Optimizer& optimizer() const { return *optimizer_; }
  /// This scheduler and its parts.
  std::vector<const SchedulerBase*> with_parts() const;

  /// Everything that changes from step to step. It excludes options, functions
  /// and the optimizer's hyper-parameters: save those as well.
  SchedulerState state() const;
  /// Continues from the state of another scheduler. Construct the scheduler
  /// first, then load its state and the optimizer's. Throws Error if the state
  /// is from another kind of scheduler, for another number of groups, or
  /// damaged; then nothing has changed.
  void load_state(const SchedulerState& state);
  /// Throws whatever load_state would throw, and changes nothing.
  void check_state(const SchedulerState& state) const;

 protected:
  explicit SchedulerBase(Optimizer& optimizer) : optimizer_(&optimizer) {}

  /// Visits every number of the state; overrides extend the base class's.
  virtual void visit_state(StateFields& fields);
  /// Schedulers whose state is part of this one's.
  virtual std::vector<SchedulerBase*> parts() const { return {}; }

  double lr(std::size_t group) const;
  /// Throws Error if the group has none.
  double initial_lr(std::size_t group) const;
  void set_lr(std::size_t group, double value);
  /// Stores the optimizer's current rates for get_last_lr().
  void read_last_lr();
  /// Call this before any change: if a compiled function fails, everything is
  /// restored to its state now.
  void about_to_change();

  std::int64_t last_epoch_ = 0;
  std::vector<double> last_lr_;

 private:
  class Before;

  void save(SchedulerState& state) const;
  void load(const SchedulerState& state);

  Optimizer* optimizer_;
  std::shared_ptr<Before> before_;
};

/// A scheduler advanced by `step()`.
class LRScheduler : public SchedulerBase {
 public:
  /// One step: call it after the optimizer's. A parameter group added since the
  /// scheduler was made must have an `initial_lr`, from which its rate
  /// continues like those of the others; throws Error if it has none.
  virtual void step() = 0;
  /// The part of `step` that takes in added groups, without a step.
  virtual void take_in_groups() = 0;

  /// For SequentialLR and ChainedScheduler. `undo` reverts the count of the
  /// step that the constructor made, `initial_step` makes it again, and
  /// `restart` sets the rates of epoch 0 from the initial ones, whatever they
  /// are now.
  virtual void undo() = 0;
  virtual void initial_step() = 0;
  virtual void restart() = 0;

 protected:
  using SchedulerBase::SchedulerBase;
};

/// The information from which a schedule computes the rate of one group.
struct Moment {
  std::int64_t epoch = 0;  ///< Steps made so far; 0 at the start.
  std::size_t group = 0;   ///< Index of the group.
  double lr = 0;           ///< the optimizer's current rate
  double base_lr = 0;      ///< the rate at the start
  bool initial = false;    ///< true in the constructor's step
};

/// A scheduler that computes the next rate of each group from a rule.
class RuleScheduler : public LRScheduler {
 public:
  void step() final { move_to(last_epoch_ + 1, How::step); }
  void take_in_groups() final;
  void undo() final { --last_epoch_; }
  void initial_step() final { move_to(last_epoch_ + 1, How::initial); }
  void restart() final { move_to(0, How::restart); }

  /// The rates that the schedule starts from, one per group.
  const std::vector<double>& base_lrs() const { return base_lrs_; }

 protected:
  using LRScheduler::LRScheduler;

  virtual double next_lr(const Moment& now) const = 0;
  virtual double restart_lr(const Moment& now) const = 0;
  virtual bool cycles_momentum() const = 0;
  virtual double next_momentum(const Moment& now) const = 0;
  /// Throws Error if the options do not fit this number of groups.
  virtual void check_options(std::size_t groups) const = 0;
  /// The rate that a group's schedule starts from, after the first step.
  virtual double base_lr(std::size_t group) const = 0;
  /// Prepares a group before the first step, unless resumed.
  virtual void begin(ParamGroup& group, std::size_t index) const = 0;
  /// Advances the rule's own counts.
  virtual void advance(std::int64_t epoch) = 0;

  /// Does all the work of the constructor: call it last.
  void start(std::int64_t last_epoch);
  void visit_state(StateFields& fields) override;
  /// Sets the rates for an epoch that `advance` has reached.
  void apply(std::int64_t epoch) { set_rates(epoch, How::step); }

 private:
  enum class How { initial, step, restart };

  void check_momentum();
  void move_to(std::int64_t epoch, How how);
  void set_rates(std::int64_t epoch, How how);

  std::vector<double> base_lrs_;
  std::vector<double> next_lrs_;
  std::vector<double> next_momentums_;
};

/// A scheduler made from a struct that holds its options and the rule:
///
///     struct HalveLROptions {
///       static constexpr const char* name = "HalveLR";
///       std::int64_t every = 10;
///       std::int64_t last_epoch = -1;
///
///       void validate(std::size_t /*groups*/) const {
///         if (every < 1) throw Error("HalveLR: every must be at least 1");
///       }
///       double next_lr(const Moment& now) const {
///         const bool due = now.epoch > 0 && now.epoch % every == 0;
///         return due ? now.lr / 2 : now.lr;
///       }
///     };
///     using HalveLR = ScheduledBy<HalveLROptions>;
///
///     HalveLR sched(opt, {.every = 20});
///
/// The struct may have more members:
/// - `restart_lr(now)`: the rate at epoch 0 when a SequentialLR switches to it;
/// `next_lr` by default.
/// - `cycle_momentum` and `next_momentum(now)`: for betas[0], or momentum if
/// the
/// optimizer has no betas.
/// - `begin(group, index)`: sets up a group before the first step.
/// - `base_lr_of(group)`: the value of `now.base_lr` after the first step; by
/// default the group's initial rate, as in the first step.
/// - `advance(epoch)` and `visit_state(fields)`: for numbers that it counts
/// itself and keeps in the state.
template <class Options>
class ScheduledBy : public RuleScheduler {
 public:
  /// Sets the rates of epoch 0. Throws Error for invalid options.
  explicit ScheduledBy(Optimizer& optimizer, Options options = {})
      : RuleScheduler(optimizer), options_(std::move(options)) {
    options_.validate(optimizer.group_count());
    // Safe: none of the virtual functions below is overridden further.
    start(options_.last_epoch);
  }

  std::string name() const final { return Options::name; }
  /// The options, including the rule's own counts.
  const Options& options() const { return options_; }

 protected:
  double next_lr(const Moment& now) const final {
    return options_.next_lr(now);
  }
  double restart_lr(const Moment& now) const final {
    if constexpr (requires { options_.restart_lr(now); }) {
      return options_.restart_lr(now);
    } else {
      return options_.next_lr(now);
    }
  }
  bool cycles_momentum() const final {
    if constexpr (requires { options_.cycle_momentum; }) {
      return options_.cycle_momentum;
    } else {
      return false;
    }
  }
  double next_momentum(const Moment& now) const final {
    if constexpr (requires { options_.next_momentum(now); }) {
      return options_.next_momentum(now);
    } else {
      return 0;
    }
  }
  void check_options(std::size_t groups) const final {
    options_.validate(groups);
  }
  double base_lr(std::size_t group) const final {
    if constexpr (requires { options_.base_lr_of(group); }) {
      return options_.base_lr_of(group);
    } else {
      return initial_lr(group);
    }
  }
  void begin(ParamGroup& group, std::size_t index) const final {
    if constexpr (requires { options_.begin(group, index); }) {
      options_.begin(group, index);
    }
  }
  void advance(std::int64_t epoch) final {
    if constexpr (requires { options_.advance(epoch); }) {
      options_.advance(epoch);
    }
  }
  void visit_state(StateFields& fields) final {
    RuleScheduler::visit_state(fields);
    if constexpr (requires { options_.visit_state(fields); }) {
      options_.visit_state(fields);
    }
  }
  Options& rule() { return options_; }

 private:
  Options options_;
};

}  // namespace fuse
