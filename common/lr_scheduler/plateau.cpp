#include "fusebook/lr_scheduler/plateau.h"

#include <fmt/core.h>

#include <algorithm>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

void check_options(const ReduceLROnPlateauOptions& options,
                   std::size_t groups) {
  const std::string place = "ReduceLROnPlateau: ";
  if (groups == 0) {
    throw Error(place +
                "the optimizer has no parameter groups; was it moved from?");
  }
  if (!(options.factor < 1)) throw Error(place + "Factor should be < 1.0.");
  const auto check_count = [&](const char* what, std::int64_t count) {
    if (count >= 0) return;
    throw Error(fmt::format("{}{} must not be negative, but is {}", place, what,
                            count));
  };
  check_count("patience", options.patience);
  check_count("cooldown", options.cooldown);
  if (options.min_lr.is_list() && options.min_lr.size() != groups) {
    throw Error(fmt::format("{}expected {} min_lrs, got {}", place,
                            number_text(groups), options.min_lr.size()));
  }
  if (options.mode != "min" && options.mode != "max") {
    throw Error(place + "mode " + options.mode + " is unknown!");
  }
  if (options.threshold_mode != "rel" && options.threshold_mode != "abs") {
    throw Error(place + "threshold mode " + options.threshold_mode +
                " is unknown!");
  }
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer,
                                     ReduceLROnPlateauOptions options)
    : SchedulerBase(optimizer), options_(std::move(options)) {
  check_options(options_, optimizer.group_count());
  if (options_.mode == "max") best_ = -best_;
  read_last_lr();
}

void ReduceLROnPlateau::step(double metrics) {
  // A single min_lr applies to all groups, including those added later.
  const std::size_t groups = optimizer().group_count();
  if (options_.min_lr.is_list() || groups == 0) {
    check_options(options_, groups);
  }
  about_to_change();
  ++last_epoch_;
  if (is_better(metrics)) {
    best_ = metrics;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (in_cooldown()) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    reduce_lr();
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  read_last_lr();
}

bool ReduceLROnPlateau::is_better(double metrics) const {
  const bool relative = options_.threshold_mode == "rel";
  const double t = options_.threshold;
  if (options_.mode == "min") {
    return metrics < (relative ? best_ * (1.0 - t) : best_ - t);
  }
  return metrics > (relative ? best_ * (t + 1.0) : best_ + t);
}

void ReduceLROnPlateau::reduce_lr() {
  for (std::size_t g = 0; g < optimizer().group_count(); ++g) {
    const double old_lr = lr(g);
    const double new_lr =
        std::max(old_lr * options_.factor, options_.min_lr[g]);
    if (old_lr - new_lr > options_.eps) set_lr(g, new_lr);
  }
}

void ReduceLROnPlateau::visit_state(StateFields& fields) {
  SchedulerBase::visit_state(fields);
  fields("best", best_);
  fields("cooldown_counter", cooldown_counter_);
  fields("num_bad_epochs", num_bad_epochs_);
}

}  // namespace fuse
