#include "fusebook/lr_scheduler/cycles.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <numbers>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

void CyclicLROptions::validate(std::size_t groups) const {
  const std::string place = name;
  base_lr.check(place, "base_lr", groups);
  max_lr.check(place, "max_lr", groups);
  if (step_size_up < 1 || step_size_down.value_or(1) < 1) {
    throw Error(place + ": step_size_up and step_size_down must be at least 1");
  }
  if (mode != "triangular" && mode != "triangular2" && mode != "exp_range" &&
      !scale_fn) {
    throw Error(place + ": mode is invalid and scale_fn is None: \"" + mode +
                "\" is neither triangular, triangular2 nor exp_range");
  }
  if (scale_mode != "cycle" && scale_mode != "iterations") {
    throw Error(place +
                ": scale_mode must be \"cycle\" or \"iterations\", "
                "but is \"" +
                scale_mode + "\"");
  }
  if (!cycle_momentum) return;
  base_momentum.check(place, "base_momentum", groups);
  max_momentum.check(place, "max_momentum", groups);
}

void CyclicLROptions::begin(ParamGroup& group, std::size_t index) const {
  group["lr"].assign(base_lr[index]);
}

// Distance of a value from its lower bound, given the largest distance.
double CyclicLROptions::scaled_height(double height, std::int64_t epoch) const {
  const double up = double(step_size_up);
  const double total = up + double(step_size_down.value_or(step_size_up));
  const double ratio = up / total;
  const double cycle = std::floor(1 + double(epoch) / total);
  const double x = 1.0 + double(epoch) / total - cycle;
  height *= x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  if (scale_fn) {
    return height * scale_fn(scale_mode == "cycle" ? cycle : double(epoch));
  }
  if (mode == "triangular2") return height * (1 / std::pow(2.0, cycle - 1));
  if (mode == "exp_range") return height * std::pow(gamma, double(epoch));
  return height;
}

double CyclicLROptions::next_lr(const Moment& now) const {
  const double low = now.base_lr;
  return low + scaled_height(max_lr[now.group] - low, now.epoch);
}

double CyclicLROptions::next_momentum(const Moment& now) const {
  const double high = max_momentum[now.group];
  return high - scaled_height(high - base_momentum[now.group], now.epoch);
}

void OneCycleLROptions::validate(std::size_t groups) const {
  const std::string where = name;
  const auto positive = [&](const char* what, std::int64_t count) {
    if (count > 0) return;
    throw Error(fmt::format("{}: Expected positive integer {}, but got {}",
                            where, what, number_text(count)));
  };
  if (total_steps) {
    positive("total_steps", *total_steps);
  } else if (epochs && steps_per_epoch) {
    positive("epochs", *epochs);
    positive("steps_per_epoch", *steps_per_epoch);
  } else {
    throw Error(where +
                ": You must define either total_steps OR (epochs AND "
                "steps_per_epoch)");
  }
  if (!(pct_start >= 0 && pct_start <= 1)) {
    throw Error(
        fmt::format("{}: Expected float between 0 and 1 pct_start, but got {}",
                    where, number_text(pct_start)));
  }
  if (anneal_strategy != "cos" && anneal_strategy != "linear") {
    throw Error(where +
                ": anneal_strategy must be one of 'cos' or 'linear', "
                "instead got " +
                anneal_strategy);
  }
  max_lr.check(where, "max_lr", groups);
  if (div_factor == 0 || final_div_factor == 0) {
    throw Error(where + ": div_factor and final_div_factor cannot be 0");
  }
  if (!cycle_momentum) return;
  base_momentum.check(where, "base_momentum", groups);
  max_momentum.check(where, "max_momentum", groups);
}

void OneCycleLROptions::begin(ParamGroup& group, std::size_t index) const {
  group.initial_lr = initial_lr(index);
}

double OneCycleLROptions::end_of(int phase) const {
  const double total = double(steps());
  if (phase == (three_phase ? 2 : 1)) return total - 1;
  return phase == 0 ? pct_start * total - 1 : 2 * pct_start * total - 2;
}

OneCycleLROptions::Place OneCycleLROptions::place(std::int64_t epoch) const {
  if (epoch > steps()) {
    throw Error(
        fmt::format("OneCycleLR: Tried to step {} times. The specified number "
                    "of total steps is {}",
                    number_text(epoch), number_text(steps())));
  }
  const double now = double(epoch);
  const int last = three_phase ? 2 : 1;
  double start = 0;
  int phase = 0;
  for (; phase < last && now > end_of(phase); ++phase) start = end_of(phase);
  const double length = end_of(phase) - start;
  if (length == 0) {
    throw Error(fmt::format(
        "OneCycleLR: pct_start {} of {} steps leaves a phase without steps; "
        "choose another pct_start or total_steps",
        number_text(pct_start), number_text(steps())));
  }
  return {phase, (now - start) / length};
}

double OneCycleLROptions::anneal(double from, double to, double done) const {
  if (anneal_strategy == "linear") return (to - from) * done + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * done) + 1);
}

double OneCycleLROptions::next_lr(const Moment& now) const {
  const double low = initial_lr(now.group);
  const double high = max_lr[now.group];
  const double end = low / final_div_factor;
  const auto [phase, done] = place(now.epoch);
  const std::array<double, 4> corners = three_phase
                                            ? std::array{low, high, low, end}
                                            : std::array{low, high, end, end};
  const auto at = std::size_t(phase);
  return anneal(corners[at], corners[at + 1], done);
}

double OneCycleLROptions::next_momentum(const Moment& now) const {
  const double low = base_momentum[now.group];
  const double high = max_momentum[now.group];
  const auto [phase, done] = place(now.epoch);
  const std::array<double, 4> corners = {high, low, high, high};
  const auto at = std::size_t(phase);
  return anneal(corners[at], corners[at + 1], done);
}

}  // namespace fuse
