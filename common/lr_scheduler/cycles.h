#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "fusebook/lr_scheduler/per_group.h"
#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// Options of torch.optim.lr_scheduler.CyclicLR, with its defaults.
struct CyclicLROptions {
  static constexpr const char* name = "CyclicLR";
  PerGroup<double> base_lr = {};     ///< required
  PerGroup<double> max_lr = {};      ///< required
  std::int64_t step_size_up = 2000;  ///< Steps of the rising half.
  std::optional<std::int64_t> step_size_down = {};  ///< default: step_size_up
  std::string mode = "triangular";  ///< or "triangular2", "exp_range"
  double gamma = 1;                 ///< for "exp_range"
  /// Scales the height of a cycle, instead of `mode`.
  std::function<double(double)> scale_fn = {};
  std::string scale_mode = "cycle";  ///< argument of scale_fn; or "iterations"
  /// Moves momentum, or betas[0] if the optimizer has betas, inversely.
  bool cycle_momentum = true;
  PerGroup<double> base_momentum = 0.8;  ///< Momentum at the largest rate.
  PerGroup<double> max_momentum = 0.9;   ///< Momentum at the smallest rate.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  void begin(ParamGroup& group, std::size_t index) const;
  /// Used from the second step on: as in torch, the first one starts from the
  /// group's initial rate, which an earlier scheduler may have set.
  double base_lr_of(std::size_t group) const { return base_lr[group]; }
  double next_lr(const Moment& now) const;
  double next_momentum(const Moment& now) const;

 private:
  double scaled_height(double height, std::int64_t epoch) const;
};
/// Cycles up and down between two rates (Smith, 2017).
using CyclicLR = ScheduledBy<CyclicLROptions>;

/// Options of torch.optim.lr_scheduler.OneCycleLR, with its defaults.
struct OneCycleLROptions {
  static constexpr const char* name = "OneCycleLR";
  PerGroup<double> max_lr = {};  ///< required
  /// Required, unless both `epochs` and `steps_per_epoch` are given.
  std::optional<std::int64_t> total_steps = {};
  /// total_steps is epochs * steps_per_epoch.
  std::optional<std::int64_t> epochs = {};
  std::optional<std::int64_t> steps_per_epoch = {};  ///< See `epochs`.
  double pct_start = 0.3;               ///< Fraction of the steps that rise.
  std::string anneal_strategy = "cos";  ///< or "linear"
  /// Moves momentum, or betas[0] if the optimizer has betas, inversely.
  bool cycle_momentum = true;
  PerGroup<double> base_momentum = 0.85;  ///< Momentum at the largest rate.
  PerGroup<double> max_momentum = 0.95;   ///< Momentum at the smallest rate.
  double div_factor = 25;                 ///< max_lr divided by the first rate.
  double final_div_factor = 1e4;          ///< First rate divided by the last.
  bool three_phase = false;      ///< Falls as long as it rose, then further.
  std::int64_t last_epoch = -1;  ///< Resumes after this epoch; -1 starts anew.

  void validate(std::size_t groups) const;
  void begin(ParamGroup& group, std::size_t index) const;
  /// Throws Error after `steps()` steps.
  double next_lr(const Moment& now) const;
  double next_momentum(const Moment& now) const;
  /// Number of steps in the cycle.
  std::int64_t steps() const {
    return total_steps ? *total_steps : *epochs * *steps_per_epoch;
  }

 private:
  struct Place {
    int phase;
    double done;  ///< fraction of it, from 0 to 1
  };

  Place place(std::int64_t epoch) const;
  double end_of(int phase) const;
  double anneal(double from, double to, double done) const;
  double initial_lr(std::size_t group) const {
    return max_lr[group] / div_factor;
  }
};
/// Rises to `max_lr`, then falls far below the first rate (Smith and Topin,
/// 2018).
using OneCycleLR = ScheduledBy<OneCycleLROptions>;

}  // namespace fuse
