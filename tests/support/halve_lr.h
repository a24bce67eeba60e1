// The worked example of CONTRIBUTING.md: a scheduler of one's own.
#pragma once

#include <cstdint>

#include "fusebook/lr_scheduler/scheduler.h"
#include "fusebook/support/error.h"

namespace fuse {

/// Options of HalveLR.
struct HalveLROptions {
  static constexpr const char* name = "HalveLR";
  std::int64_t every = 10;
  std::int64_t last_epoch = -1;

  void validate(std::size_t /*groups*/) const {
    if (every < 1) throw Error("HalveLR: every must be at least 1");
  }
  double next_lr(const Moment& now) const {
    const bool due = now.epoch > 0 && now.epoch % every == 0;
    return due ? now.lr / 2 : now.lr;
  }
};
/// Halves the rate every `every` epochs.
using HalveLR = ScheduledBy<HalveLROptions>;

}  // namespace fuse
