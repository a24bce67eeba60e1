// What the tests of schedulers share: schedulers of any kind behind one face,
// and a row for each with the schedule it must follow, in long double.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lr_scheduler.h"

namespace lr_testing {

/// A scheduler with the parts that it refers to.
struct Made {
  std::vector<std::shared_ptr<fuse::SchedulerBase>> owned;  // itself last
  std::function<void(std::int64_t)> step;  // the how many-eth, from 1
  fuse::SchedulerBase& scheduler() const { return *owned.back(); }
};

template <class Kind, class Options>
Made make(fuse::Optimizer& opt, Options options) {
  auto kept = std::make_shared<Kind>(opt, std::move(options));
  return {{kept}, [kept](std::int64_t) { kept->step(); }};
}

/// What a row's scheduler must do.
struct ScheduleRow {
  std::string name;
  /// With `momentum`, one that can moves the momentum or betas[0] too.
  std::function<Made(fuse::Optimizer&, bool momentum)> make;
  /// The rates of epochs 0, 1, ... of a group that began with `base`.
  std::function<std::vector<long double>(long double base, std::size_t group,
                                         int epochs)>
      rates;
  /// Of the difference, as a share of the largest rate.
  double tolerance = 0;
  /// The momentum, for the schedulers that move it.
  std::function<long double(int epoch, std::size_t group)> momentum = {};
};

/// The metric that ReduceLROnPlateau is given after step `i`.
inline double metric(std::int64_t i) {
  return std::fmax(1.0 / double(i), 0.02) + 0.001 * double(i * 7919 % 13);
}

}  // namespace lr_testing
