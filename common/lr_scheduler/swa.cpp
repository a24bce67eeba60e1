#include "fusebook/lr_scheduler/swa.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fusebook/support/error.h"

namespace fuse {

void SWALROptions::validate(std::size_t groups) const {
  swa_lr.check(name, "swa_lr", groups);
  if (anneal_strategy != "cos" && anneal_strategy != "linear") {
    throw Error(fmt::format(
        "{}: anneal_strategy must be \"cos\" or \"linear\", but is \"{}\"",
        name, anneal_strategy));
  }
  if (anneal_epochs < 0) {
    throw Error(fmt::format("{}: anneal_epochs must not be negative, but is {}",
                            name, anneal_epochs));
  }
}

// How much of the rate is that of the end. Without epochs in between, that is
// where the first one is.
double SWALROptions::share(std::int64_t epoch) const {
  if (anneal_epochs == 0) return epoch < 0 ? 0 : 1;
  const double part =
      std::clamp(double(epoch) / double(anneal_epochs), 0.0, 1.0);
  if (anneal_strategy == "linear") return part;
  return (1 - std::cos(std::numbers::pi * part)) / 2;
}

double SWALROptions::between(double begin, double end,
                             std::int64_t epoch) const {
  const double part = share(epoch);
  return end * part + begin * (1 - part);
}

// From the current rate, torch works out the one that it began with.
double SWALROptions::next_lr(const Moment& now) const {
  const double end = swa_lr[now.group];
  const double part = share(now.epoch - 1);
  const double begin = part == 1 ? end : (now.lr - part * end) / (1 - part);
  return between(begin, end, now.epoch);
}

double SWALROptions::restart_lr(const Moment& now) const {
  return between(now.base_lr, swa_lr[now.group], now.epoch);
}

}  // namespace fuse
