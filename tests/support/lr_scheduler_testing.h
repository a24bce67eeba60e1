// What the tests of schedulers share: schedulers of any kind behind one face,
// and a row for each with the schedule it must follow, in long double.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/adam.h"

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

// ---- optimizers to schedule -------------------------------------------------

inline constexpr std::array<double, 3> kRates = {0.01, 0.3, 1e-4};

/// Three groups with rates of their own.
template <class Kind = fuse::Adam, class Options = fuse::AdamOptions>
Kind make_optimizer(const std::array<double, 3>& rates = kRates,
                    bool tensors = false,
                    fuse::DType dtype = fuse::DType::float32) {
  std::vector<typename Kind::Group> groups;
  for (const double rate : rates) {
    Options options;
    options.lr =
        tensors ? fuse::Scalar(fuse::tensor(rate, dtype)) : fuse::Scalar(rate);
    groups.emplace_back(std::vector<fuse::Tensor>{fuse::zeros({1})}, options);
  }
  return Kind(std::move(groups));
}

/// One group.
inline fuse::Adam one_group(const fuse::Scalar& rate = 0.01) {
  return fuse::Adam({fuse::zeros({1})}, {.lr = rate});
}

inline std::vector<double> values(fuse::Optimizer& opt,
                                  const std::string& name) {
  std::vector<double> all;
  for (std::size_t g = 0; g < opt.group_count(); ++g) {
    all.push_back(opt.group(g)[name].value());
  }
  return all;
}

inline void set_values(fuse::Optimizer& opt, const std::string& name,
                       const std::vector<double>& wanted) {
  for (std::size_t g = 0; g < wanted.size(); ++g) {
    opt.group(g)[name].assign(wanted[g]);
  }
}

}  // namespace lr_testing
