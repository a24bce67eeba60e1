#include "fusebook/lr_scheduler/steps.h"

#include <fmt/core.h>

#include <algorithm>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

void StepLROptions::validate(std::size_t /*groups*/) const {
  if (step_size <= 0) {
    throw Error(fmt::format("StepLR: expected positive step_size, but got {}",
                            number_text(step_size)));
  }
}

void MultiStepLROptions::validate(std::size_t /*groups*/) const {
  if (!std::is_sorted(milestones.begin(), milestones.end())) {
    throw Error(
        "MultiStepLR: milestones should be a list of increasing "
        "epochs");
  }
  if (!milestones.empty() && milestones.front() < 0) {
    throw Error(fmt::format(
        "MultiStepLR: milestones must not be negative, but one is {}",
        number_text(milestones.front())));
  }
}

double MultiStepLROptions::next_lr(const Moment& now) const {
  const auto [first, last] =
      std::equal_range(milestones.begin(), milestones.end(), now.epoch);
  if (first == last) return now.lr;
  return now.lr * std::pow(gamma, double(last - first));
}

double MultiStepLROptions::restart_lr(const Moment& now) const {
  const auto passed =
      std::upper_bound(milestones.begin(), milestones.end(), now.epoch);
  return now.base_lr * std::pow(gamma, double(passed - milestones.begin()));
}

void ExponentialLROptions::validate(std::size_t /*groups*/) const {
  if (std::isnan(gamma)) throw Error("ExponentialLR needs gamma");
}

}  // namespace fuse
