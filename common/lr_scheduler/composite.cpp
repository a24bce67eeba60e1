#include "fusebook/lr_scheduler/composite.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

// Each counts its own epochs, so it can be in one place only.
void check_once(const std::string& name, const SchedulerList& schedulers) {
  std::map<const SchedulerBase*, std::size_t> seen;
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    for (const SchedulerBase* part : schedulers[i]->with_parts()) {
      const auto [first, fresh] = seen.try_emplace(part, i);
      if (fresh) continue;
      throw Error(fmt::format(
          "{}: the schedulers at index {} and {} are the same {}; make a "
          "separate scheduler for each place",
          name, first->second, i, part->name()));
    }
  }
}

// Returns the optimizer they all belong to.
Optimizer& check_schedulers(const std::string& name,
                            const SchedulerList& schedulers) {
  if (schedulers.empty()) {
    throw Error(name + " expects at least one scheduler, but got none");
  }
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    if (schedulers[i] == nullptr) {
      throw Error(
          fmt::format("{}: the scheduler at index {} is null", name, i));
    }
    if (&schedulers[i]->optimizer() != &schedulers[0]->optimizer()) {
      throw Error(fmt::format(
          "{} expects all schedulers to belong to the same optimizer, but got "
          "scheduler {} at index {}, which belongs to another one",
          name, schedulers[i]->name(), i));
    }
  }
  check_once(name, schedulers);
  for (LRScheduler* scheduler : schedulers) scheduler->take_in_groups();
  return schedulers[0]->optimizer();
}

std::vector<SchedulerBase*> as_parts(const SchedulerList& schedulers) {
  return {schedulers.begin(), schedulers.end()};
}

}  // namespace

SequentialLR::SequentialLR(Optimizer& optimizer, SequentialLROptions options)
    : LRScheduler(optimizer),
      schedulers_(std::move(options.schedulers)),
      milestones_(std::move(options.milestones)) {
  if (&check_schedulers(name(), schedulers_) != &optimizer) {
    throw Error(
        "SequentialLR expects all schedulers to belong to the same "
        "optimizer, but they belong to a different one");
  }
  if (milestones_.size() + 1 != schedulers_.size()) {
    throw Error(fmt::format(
        "Sequential Schedulers expects number of schedulers provided to be one "
        "more than the number of milestone points, but got number of "
        "schedulers {} and the number of milestones to be equal to {}",
        schedulers_.size(), milestones_.size()));
  }
  if (!std::is_sorted(milestones_.begin(), milestones_.end()) ||
      (!milestones_.empty() && milestones_.front() < 0)) {
    throw Error("SequentialLR: milestones must be non-negative and increasing");
  }
  // Each constructor has made its first step: only that of the first part
  // counts.
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    set_lr(g, initial_lr(g));
  }
  for (LRScheduler* scheduler : schedulers_) scheduler->undo();
  last_epoch_ = options.last_epoch;
  initial_step();
}

std::size_t SequentialLR::part_at(std::int64_t epoch) const {
  const auto next =
      std::upper_bound(milestones_.begin(), milestones_.end(), epoch);
  return std::size_t(next - milestones_.begin());
}

void SequentialLR::step() {
  about_to_change();
  const std::int64_t epoch = last_epoch_ + 1;
  const std::size_t part = part_at(epoch);
  if (part > 0 && milestones_[part - 1] == epoch) {
    schedulers_[part]->restart();
  } else {
    schedulers_[part]->step();
  }
  last_epoch_ = epoch;
  read_last_lr();
}

void SequentialLR::take_in_groups() {
  for (LRScheduler* scheduler : schedulers_) scheduler->take_in_groups();
}

void SequentialLR::undo() {
  --last_epoch_;
  schedulers_[0]->undo();
}

void SequentialLR::initial_step() {
  schedulers_[0]->initial_step();
  ++last_epoch_;
  read_last_lr();
}

void SequentialLR::restart() {
  about_to_change();
  schedulers_[0]->restart();
  last_epoch_ = 0;
  read_last_lr();
}

std::vector<SchedulerBase*> SequentialLR::parts() const {
  return as_parts(schedulers_);
}

ChainedScheduler::ChainedScheduler(SchedulerList schedulers)
    : LRScheduler(check_schedulers("ChainedScheduler", schedulers)),
      schedulers_(std::move(schedulers)) {
  read_last_lr();
}

void ChainedScheduler::step() {
  about_to_change();
  for (LRScheduler* scheduler : schedulers_) scheduler->step();
  ++last_epoch_;
  read_last_lr();
}

void ChainedScheduler::take_in_groups() {
  for (LRScheduler* scheduler : schedulers_) scheduler->take_in_groups();
}

void ChainedScheduler::undo() {
  --last_epoch_;
  for (LRScheduler* scheduler : schedulers_) scheduler->undo();
}

void ChainedScheduler::initial_step() {
  for (LRScheduler* scheduler : schedulers_) scheduler->initial_step();
  ++last_epoch_;
  read_last_lr();
}

// Each part multiplies the rate set by the one before.
void ChainedScheduler::restart() {
  about_to_change();
  for (std::size_t g = 0; g < optimizer().group_count(); ++g) {
    set_lr(g, initial_lr(g));
  }
  initial_step();
}

std::vector<SchedulerBase*> ChainedScheduler::parts() const {
  return as_parts(schedulers_);
}

}  // namespace fuse
