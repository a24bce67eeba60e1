#include "fusebook/lr_scheduler/scheduler.h"

#include <fmt/core.h>

#include <bit>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

// torch prefers betas where an optimizer has both.
Scalar* momentum_of(ParamGroup& group) {
  Scalar* const beta1 = group.find("betas[0]");
  return beta1 != nullptr ? beta1 : group.find("momentum");
}

}  // namespace

// A scheduler and the numbers it moves, as they were when the current recording
// began.
class SchedulerBase::Before final : public Undo {
 public:
  explicit Before(SchedulerBase& scheduler) : scheduler_(&scheduler) {}

  /// Called when the scheduler is destroyed.
  void forget() { scheduler_ = nullptr; }
  /// Saves once per recording. Allocates only the first time.
  bool note(std::uint64_t recording) {
    if (recording_ == recording) return false;
    recording_ = recording;
    numbers_.clear();
    SchedulerState none;
    StateFields fields(StateFields::Mode::note, numbers_, none);
    scheduler_->visit_state(fields);
    visit_rates(fields);
    return true;
  }
  void undo() override {
    recording_ = 0;
    if (scheduler_ == nullptr) return;
    SchedulerState none;
    StateFields fields(StateFields::Mode::put_back, numbers_, none);
    scheduler_->visit_state(fields);
    visit_rates(fields);
  }
  void keep() override { recording_ = 0; }

 private:
  void visit_rates(StateFields& fields) {
    Optimizer& optimizer = scheduler_->optimizer();
    for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
      visit(fields, &optimizer.group(g)["lr"]);
      visit(fields, momentum_of(optimizer.group(g)));
    }
  }
  static void visit(StateFields& fields, Scalar* scalar) {
    if (scalar == nullptr) return;
    const double now = scalar->value();
    double number = now;
    fields("", number);
    if (std::bit_cast<std::uint64_t>(number) !=
        std::bit_cast<std::uint64_t>(now)) {
      scalar->assign(number);
    }
  }

  SchedulerBase* scheduler_;
  std::uint64_t recording_ = 0;
  std::vector<double> numbers_;
};

SchedulerBase::~SchedulerBase() {
  if (before_ != nullptr) before_->forget();
}

void SchedulerBase::about_to_change() {
  Recorder* const recorder = Recorder::current();
  if (recorder == nullptr) return;
  if (before_ == nullptr) before_ = std::make_shared<Before>(*this);
  if (before_->note(recorder->serial())) recorder->on_failure(before_);
}

std::vector<const SchedulerBase*> SchedulerBase::with_parts() const {
  std::vector<const SchedulerBase*> all = {this};
  for (const SchedulerBase* part : parts()) {
    const auto inner = part->with_parts();
    all.insert(all.end(), inner.begin(), inner.end());
  }
  return all;
}

double SchedulerBase::initial_lr(std::size_t group) const {
  const auto& rate = optimizer_->group(group).initial_lr;
  if (rate) return *rate;
  throw Error(fmt::format(
      "{}: param_groups[{}] was added after this scheduler was made and has no "
      "initial_lr; set it to the rate from which the group's schedule starts, "
      "or make the scheduler again",
      name(), group));
}

double SchedulerBase::lr(std::size_t group) const {
  return optimizer_->group(group)["lr"].value();
}

void SchedulerBase::set_lr(std::size_t group, double value) {
  optimizer_->group(group)["lr"].assign(value);
}

void SchedulerBase::read_last_lr() {
  last_lr_.resize(optimizer_->group_count());
  for (std::size_t g = 0; g < last_lr_.size(); ++g) {
    last_lr_[g] = lr(g);
    optimizer_->group(g)["lr"].set_scheduled();
  }
}

void SchedulerBase::visit_state(StateFields& fields) {
  fields("last_epoch", last_epoch_);
  fields("last_lr", last_lr_);
}

SchedulerState SchedulerBase::state() const {
  SchedulerState state;
  save(state);
  return state;
}

void SchedulerBase::save(SchedulerState& state) const {
  state.kind = name();
  StateFields fields(StateFields::Mode::save, state);
  // Saving and checking only read; one list of fields serves all directions.
  const_cast<SchedulerBase*>(this)->visit_state(fields);
  for (const SchedulerBase* part : parts()) {
    part->save(state.schedulers.emplace_back());
  }
}

void SchedulerBase::load_state(const SchedulerState& state) {
  check_state(state);
  load(state);
}

void SchedulerBase::check_state(const SchedulerState& state) const {
  if (state.kind != name()) {
    throw Error("cannot load the state of \"" + state.kind + "\" into " +
                name());
  }
  const std::vector<SchedulerBase*> own = parts();
  if (state.schedulers.size() != own.size()) {
    throw Error(
        fmt::format("state of {}: has {} inner schedulers instead of {}",
                    name(), state.schedulers.size(), own.size()));
  }
  SchedulerState copy = state;
  StateFields fields(StateFields::Mode::check, copy);
  const_cast<SchedulerBase*>(this)->visit_state(fields);
  fields.check_no_others();
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i]->check_state(state.schedulers[i]);
  }
}

void SchedulerBase::load(const SchedulerState& state) {
  SchedulerState copy = state;
  StateFields fields(StateFields::Mode::load, copy);
  visit_state(fields);
  const std::vector<SchedulerBase*> own = parts();
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i]->load(state.schedulers[i]);
  }
}

void RuleScheduler::visit_state(StateFields& fields) {
  SchedulerBase::visit_state(fields);
  fields("base_lrs", base_lrs_);
  if (fields.mode() == StateFields::Mode::note ||
      fields.mode() == StateFields::Mode::put_back) {
    return;
  }
  // SequentialLR starts from these rates, and so does the next scheduler.
  std::vector<double> initial(base_lrs_.size());
  for (std::size_t g = 0; g < initial.size(); ++g) {
    initial[g] = optimizer().group(g).initial_lr.value_or(base_lrs_[g]);
  }
  fields("initial_lrs", initial);
  if (fields.mode() != StateFields::Mode::load) return;
  for (std::size_t g = 0; g < initial.size(); ++g) {
    optimizer().group(g).initial_lr = initial[g];
  }
}

void RuleScheduler::check_momentum() {
  if (!cycles_momentum()) return;
  for (std::size_t g = 0; g < optimizer().group_count(); ++g) {
    if (momentum_of(optimizer().group(g)) == nullptr) {
      throw Error(name() +
                  ": optimizer must support momentum or beta1 with "
                  "`cycle_momentum` option enabled");
    }
  }
}

void RuleScheduler::start(std::int64_t last_epoch) {
  if (last_epoch < -1) {
    throw Error(fmt::format(
        "{}: last_epoch must be -1 (for a new run) or the last epoch of the "
        "run to resume, but is {}",
        name(), last_epoch));
  }
  if (optimizer().group_count() == 0) {
    throw Error(name() +
                ": the optimizer has no parameter groups; was it "
                "moved from?");
  }
  check_momentum();
  for (std::size_t g = 0; g < optimizer().group_count(); ++g) {
    ParamGroup& group = optimizer().group(g);
    if (last_epoch == -1) {
      begin(group, g);
      if (!group.initial_lr) group.initial_lr = lr(g);
    } else if (!group.initial_lr) {
      throw Error(fmt::format(
          "{}: param 'initial_lr' is not specified in param_groups[{}] when "
          "resuming scheduler with last_epoch >= 0; set it to the rate that "
          "the run started from",
          name(), g));
    }
    base_lrs_.push_back(*group.initial_lr);
  }
  last_epoch_ = last_epoch;
  initial_step();
  for (std::size_t g = 0; g < base_lrs_.size(); ++g) base_lrs_[g] = base_lr(g);
}

// All groups are taken in, or none.
void RuleScheduler::take_in_groups() {
  const std::size_t before = base_lrs_.size();
  const std::size_t now = optimizer().group_count();
  if (now == before) return;
  if (now < before) {
    throw Error(
        fmt::format("{}: the optimizer has {} parameter groups, but had {} "
                    "when this scheduler was made; make the scheduler again",
                    name(), now, before));
  }
  for (std::size_t g = before; g < now; ++g) {
    static_cast<void>(initial_lr(g));
  }
  check_options(now);
  for (std::size_t g = before; g < now; ++g) base_lrs_.push_back(base_lr(g));
}

void RuleScheduler::move_to(std::int64_t epoch, How how) {
  about_to_change();
  take_in_groups();
  advance(epoch);
  set_rates(epoch, how);
}

// Computes every rate before writing any: a rule may throw.
void RuleScheduler::set_rates(std::int64_t epoch, How how) {
  next_lrs_.clear();
  next_momentums_.clear();
  for (std::size_t g = 0; g < base_lrs_.size(); ++g) {
    const Moment now = {.epoch = epoch,
                        .group = g,
                        .lr = lr(g),
                        .base_lr = base_lrs_[g],
                        .initial = how == How::initial};
    next_lrs_.push_back(how == How::restart ? restart_lr(now) : next_lr(now));
    if (cycles_momentum()) next_momentums_.push_back(next_momentum(now));
  }
  for (std::size_t g = 0; g < base_lrs_.size(); ++g) {
    set_lr(g, next_lrs_[g]);
    if (!cycles_momentum()) continue;
    Scalar* const momentum = momentum_of(optimizer().group(g));
    momentum->assign(next_momentums_[g]);
    momentum->set_scheduled();
  }
  last_epoch_ = epoch;
  read_last_lr();
}

}  // namespace fuse
