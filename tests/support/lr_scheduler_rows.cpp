#include "support/lr_scheduler_rows.h"

#include <algorithm>
#include <cmath>

namespace lr_testing {

using namespace fuse;

namespace {

/// The first of these values, one for each group.
template <class T>
std::vector<T> for_groups(const Optimizer& opt, std::vector<T> values) {
  values.resize(opt.group_count());
  return values;
}

/// Rates from a closed form.
template <class F>
auto closed(F form) {
  return [form](Real base, std::size_t group, int epochs) {
    Rates all;
    for (int e = 0; e < epochs; ++e) all.push_back(form(base, e, group));
    return all;
  };
}

Real cosine_between(Real high, Real low, Real part) {
  return low + (high - low) * (1 + std::cos(pi * part)) / 2;
}

/// Where a triangle of the given sides stands, from 0 to 1.
Real triangle(int epoch, int up, int down) {
  const int at = epoch % (up + down);
  return at <= up ? Real(at) / up : Real(up + down - at) / down;
}

/// A schedule that joins points by a curve: where it is between two of them,
/// from 0 to 1, for the place of an epoch.
struct Corner {
  Real epoch;
  Real value;
};
Real through(const std::vector<Corner>& corners, int epoch, bool cos) {
  std::size_t i = 1;
  while (i + 1 < corners.size() && Real(epoch) > corners[i].epoch) ++i;
  const Corner& a = corners[i - 1];
  const Corner& b = corners[i];
  const Real part = (Real(epoch) - a.epoch) / (b.epoch - a.epoch);
  return cos ? cosine_between(a.value, b.value, part)
             : a.value + (b.value - a.value) * part;
}

/// What a plateau does, counted without a cooldown counter: the epoch from
/// which bad ones count again.
Rates plateau(Real base, int epochs, bool max, Real factor, int patience,
              int cooldown, Real floor) {
  Rates all = {base};
  Real best = max ? -1e30L : 1e30L;
  int bad = 0;
  int counts_from = 0;
  for (int e = 1; e < epochs; ++e) {
    const Real value = metric(e);
    const bool better = max ? value > best + 0.01L : value < best * (1 - 1e-4L);
    if (better) best = value;
    bad = better || e < counts_from ? 0 : bad + 1;
    if (bad > patience) {
      base = std::max(base * factor, floor);
      bad = 0;
      counts_from = e + cooldown + 1;
    }
    all.push_back(base);
  }
  return all;
}

// ---- rows -------------------------------------------------------------------

std::vector<ScheduleRow> factor_rows() {
  return {
      {"LambdaLR",
       [](Optimizer& opt, bool) {
         const std::vector<LRLambda> lambdas = {
             [](std::int64_t e) { return 1 / (1 + 0.01 * double(e)); },
             [](std::int64_t e) { return double(e % 5) / 4; },
             [](std::int64_t) { return 1.0; }};
         return make<LambdaLR>(
             opt, LambdaLROptions{.lr_lambda = for_groups(opt, lambdas)});
       },
       closed([](Real base, int e, std::size_t group) {
         if (group == 0) return base / (1 + Real(0.01) * e);
         return group == 1 ? base * (e % 5) / 4 : base;
       }),
       1e-15},
      {"MultiplicativeLR",
       [](Optimizer& opt, bool) {
         return make<MultiplicativeLR>(
             opt, MultiplicativeLROptions{.lr_lambda = [](std::int64_t e) {
               return e % 2 != 0 ? 0.98 : 1.01;
             }});
       },
       closed([](Real base, int e, std::size_t) {
         const int odd = (e + 1) / 2;
         return base * std::pow(Real(0.98), odd) *
                std::pow(Real(1.01), e - odd);
       }),
       2e-15},
      {"StepLR",
       [](Optimizer& opt, bool) {
         return make<StepLR>(opt, StepLROptions{.step_size = 30, .gamma = 0.7});
       },
       closed([](Real base, int e, std::size_t) {
         return base * std::pow(Real(0.7), e / 30);
       }),
       1e-15},
      {"MultiStepLR",
       [](Optimizer& opt, bool) {
         return make<MultiStepLR>(
             opt, MultiStepLROptions{.milestones = {80, 200, 200, 700},
                                     .gamma = 0.3});
       },
       closed([](Real base, int e, std::size_t) {
         const int passed = (e >= 80) + 2 * (e >= 200) + (e >= 700);
         return base * std::pow(Real(0.3), passed);
       }),
       1e-15},
      {"ExponentialLR",
       [](Optimizer& opt, bool) {
         return make<ExponentialLR>(opt, ExponentialLROptions{.gamma = 0.995});
       },
       closed([](Real base, int e, std::size_t) {
         return base * std::pow(Real(0.995), e);
       }),
       2e-15},
  };
}

std::vector<ScheduleRow> ramp_rows() {
  return {
      {"ConstantLR",
       [](Optimizer& opt, bool) {
         return make<ConstantLR>(
             opt, ConstantLROptions{.factor = 0.001, .total_iters = 4});
       },
       closed([](Real base, int e, std::size_t) {
         return e < 4 ? base * Real(0.001) : base;
       }),
       1e-15},
      {"LinearLR",
       [](Optimizer& opt, bool) {
         return make<LinearLR>(opt, LinearLROptions{.start_factor = 0.9,
                                                    .end_factor = 0.05,
                                                    .total_iters = 430});
       },
       closed([](Real base, int e, std::size_t) {
         const Real part = Real(std::min(e, 430)) / 430;
         return base * (Real(0.9) + (Real(0.05) - Real(0.9)) * part);
       }),
       1e-14},
      {"PolynomialLR",
       [](Optimizer& opt, bool) {
         return make<PolynomialLR>(
             opt, PolynomialLROptions{.total_iters = 900, .power = 1.7});
       },
       closed([](Real base, int e, std::size_t) {
         return base * std::pow(1 - Real(std::min(e, 900)) / 900, Real(1.7));
       }),
       4e-15},
      {"CosineAnnealingLR",
       [](Optimizer& opt, bool) {
         return make<CosineAnnealingLR>(
             opt, CosineAnnealingLROptions{.T_max = 37, .eta_min = 1e-5});
       },
       closed([](Real base, int e, std::size_t) {
         return cosine_between(base, Real(1e-5), Real(e) / 37);
       }),
       // Near the minimum it divides by what has cancelled to 2^-8.
       1e-12},
      {"CosineAnnealingWarmRestarts",
       [](Optimizer& opt, bool) {
         return make<CosineAnnealingWarmRestarts>(
             opt, CosineAnnealingWarmRestartsOptions{
                      .T_0 = 10, .T_mult = 2, .eta_min = 1e-6});
       },
       closed([](Real base, int e, std::size_t) {
         int length = 10;
         for (; e >= length; length *= 2) e -= length;
         return cosine_between(base, Real(1e-6), Real(e) / length);
       }),
       1e-15},
      {"CosineAnnealingWarmRestarts, T_mult 1",
       [](Optimizer& opt, bool) {
         return make<CosineAnnealingWarmRestarts>(
             opt, CosineAnnealingWarmRestartsOptions{.T_0 = 7});
       },
       closed([](Real base, int e, std::size_t) {
         return cosine_between(base, 0, Real(e % 7) / 7);
       }),
       1e-15},
  };
}

const std::vector<double> kTops = {0.1, 0.2, 0.05};
const std::vector<double> kFloors = {1e-3, 1e-2, 1e-5};

// Scale: the height of a cycle (counted from 1), or at an epoch.
template <class Scale>
ScheduleRow cyclic_row(const char* name, CyclicLROptions options, Scale scale) {
  options.base_lr = 0.001;
  options.step_size_up = 20;
  options.step_size_down = 13;
  const auto height = [scale](int e) {
    return triangle(e, 20, 13) * Real(scale(1 + e / 33, e));
  };
  return {name,
          [options](Optimizer& opt, bool momentum) {
            CyclicLROptions wanted = options;
            wanted.max_lr = for_groups(opt, kTops);
            wanted.cycle_momentum = momentum;
            return make<CyclicLR>(opt, wanted);
          },
          closed([height](Real, int e, std::size_t group) {
            const Real low = Real(0.001);
            return low + (Real(kTops[group]) - low) * height(e);
          }),
          2e-14,
          [height](int e, std::size_t) {
            return Real(0.9) - (Real(0.9) - Real(0.8)) * height(e);
          }};
}

std::vector<ScheduleRow> cyclic_rows() {
  CyclicLROptions triangular;
  CyclicLROptions triangular2;
  triangular2.mode = "triangular2";
  CyclicLROptions exp_range;
  exp_range.mode = "exp_range";
  exp_range.gamma = 0.998;
  CyclicLROptions by_cycle;
  by_cycle.scale_fn = [](double cycle) { return 1 / cycle; };
  CyclicLROptions by_iteration;
  by_iteration.scale_fn = [](double e) { return 1 / (1 + e); };
  by_iteration.scale_mode = "iterations";
  return {
      cyclic_row("CyclicLR, triangular", triangular,
                 [](int, int) { return Real(1); }),
      cyclic_row("CyclicLR, triangular2", triangular2,
                 [](int cycle, int) { return std::exp2(Real(1 - cycle)); }),
      cyclic_row("CyclicLR, exp_range", exp_range,
                 [](int, int e) { return std::pow(Real(0.998), e); }),
      cyclic_row("CyclicLR, scale_fn of the cycle", by_cycle,
                 [](int cycle, int) { return 1 / Real(cycle); }),
      cyclic_row("CyclicLR, scale_fn of the iteration", by_iteration,
                 [](int, int e) { return 1 / (1 + Real(e)); }),
  };
}

// The corners of a cycle of 1000 steps, as parts of what goes up and down.
ScheduleRow one_cycle_row(const char* name, const OneCycleLROptions& options,
                          std::vector<Corner> heights) {
  const bool cos = options.anneal_strategy == "cos";
  const auto divisor = Real(options.div_factor);
  const Real lowest = 1 / divisor / Real(options.final_div_factor);
  return {name,
          [options](Optimizer& opt, bool momentum) {
            OneCycleLROptions wanted = options;
            wanted.max_lr = for_groups(opt, kTops);
            wanted.cycle_momentum = momentum;
            return make<OneCycleLR>(opt, wanted);
          },
          closed([=](Real, int e, std::size_t group) {
            std::vector<Corner> corners = heights;
            for (Corner& corner : corners) {
              corner.value = corner.value > 0 ? 1 : 1 / divisor;
            }
            corners.back().value = lowest;
            return Real(kTops[group]) * through(corners, e, cos);
          }),
          1e-15,
          [=](int e, std::size_t) {
            std::vector<Corner> corners = heights;
            for (Corner& corner : corners) {
              corner.value = corner.value > 0 ? Real(0.85) : Real(0.95);
            }
            return through(corners, e, cos);
          }};
}

std::vector<ScheduleRow> one_cycle_rows() {
  OneCycleLROptions usual;
  usual.total_steps = 1000;
  OneCycleLROptions linear;
  linear.epochs = 20;
  linear.steps_per_epoch = 50;
  linear.pct_start = 0.25;
  linear.anneal_strategy = "linear";
  linear.div_factor = 10;
  OneCycleLROptions three_phase;
  three_phase.total_steps = 1000;
  three_phase.three_phase = true;
  three_phase.final_div_factor = 100;
  // The very number that 0.3 of 1000 steps is in float64.
  const auto first = [](double pct) { return Real(pct * 1000) - 1; };
  const auto second = [](double pct) { return Real(2 * pct * 1000) - 2; };
  return {
      one_cycle_row("OneCycleLR", usual, {{0, 0}, {first(0.3), 1}, {999, 0}}),
      one_cycle_row("OneCycleLR, linear", linear,
                    {{0, 0}, {first(0.25), 1}, {999, 0}}),
      one_cycle_row("OneCycleLR, three_phase", three_phase,
                    {{0, 0}, {first(0.3), 1}, {second(0.3), 0}, {999, 0}}),
  };
}

// Warm up, decay, then waves.
Made make_sequence(Optimizer& opt) {
  Made made;
  const auto add = [&](auto part) {
    made.owned.push_back(part);
    return part.get();
  };
  const SchedulerList parts = {
      add(std::make_shared<LinearLR>(
          opt, LinearLROptions{.start_factor = 0.1, .total_iters = 100})),
      add(std::make_shared<ExponentialLR>(opt,
                                          ExponentialLROptions{.gamma = 0.99})),
      add(std::make_shared<CosineAnnealingLR>(
          opt, CosineAnnealingLROptions{.T_max = 60}))};
  auto kept = std::make_shared<SequentialLR>(
      opt, SequentialLROptions{.schedulers = parts, .milestones = {100, 400}});
  made.owned.push_back(kept);
  made.step = [kept](std::int64_t) { kept->step(); };
  return made;
}

Made make_chain(Optimizer& opt) {
  Made made;
  auto constant = std::make_shared<ConstantLR>(
      opt, ConstantLROptions{.factor = 0.1, .total_iters = 20});
  auto exponential = std::make_shared<ExponentialLR>(
      opt, ExponentialLROptions{.gamma = 0.999});
  auto steps = std::make_shared<StepLR>(
      opt, StepLROptions{.step_size = 300, .gamma = 0.5});
  auto kept = std::make_shared<ChainedScheduler>(
      SchedulerList{constant.get(), exponential.get(), steps.get()});
  made.owned = {constant, exponential, steps, kept};
  made.step = [kept](std::int64_t) { kept->step(); };
  return made;
}

std::vector<ScheduleRow> composite_rows() {
  return {
      {"SequentialLR", [](Optimizer& opt, bool) { return make_sequence(opt); },
       closed([](Real base, int e, std::size_t) {
         if (e < 100) return base * (Real(0.1) + Real(0.9) * e / 100);
         if (e < 400) return base * std::pow(Real(0.99), e - 100);
         return cosine_between(base, 0, Real(e - 400) / 60);
       }),
       1e-12},
      {"ChainedScheduler", [](Optimizer& opt, bool) { return make_chain(opt); },
       closed([](Real base, int e, std::size_t) {
         return base * (e < 20 ? Real(0.1) : 1) * std::pow(Real(0.999), e) *
                std::pow(Real(0.5), e / 300);
       }),
       4e-15},
  };
}

Made make_plateau(Optimizer& opt, ReduceLROnPlateauOptions options) {
  auto kept = std::make_shared<ReduceLROnPlateau>(opt, std::move(options));
  return {{kept}, [kept](std::int64_t i) { kept->step(metric(i)); }};
}

std::vector<ScheduleRow> plateau_rows() {
  return {
      {"ReduceLROnPlateau",
       [](Optimizer& opt, bool) {
         return make_plateau(opt, {.factor = 0.8,
                                   .patience = 50,
                                   .min_lr = for_groups(opt, kFloors)});
       },
       [](Real base, std::size_t group, int epochs) {
         return plateau(base, epochs, false, Real(0.8), 50, 0,
                        Real(kFloors[group]));
       },
       1e-15},
      {"ReduceLROnPlateau, max",
       [](Optimizer& opt, bool) {
         return make_plateau(opt, {.mode = "max",
                                   .factor = 0.9,
                                   .patience = 30,
                                   .threshold = 0.01,
                                   .threshold_mode = "abs",
                                   .cooldown = 25,
                                   .eps = 0});
       },
       [](Real base, std::size_t, int epochs) {
         return plateau(base, epochs, true, Real(0.9), 30, 25, 0);
       },
       1e-15},
  };
}

std::vector<ScheduleRow> swa_rows() {
  const std::vector<double> ends = {0.05, 0.003, 0.0};
  const auto row = [=](std::string name, std::string strategy, int epochs) {
    const bool cos = strategy == "cos";
    return ScheduleRow{std::move(name),
                       [=](Optimizer& opt, bool) {
                         return make<SWALR>(
                             opt, SWALROptions{.swa_lr = for_groups(opt, ends),
                                               .anneal_epochs = epochs,
                                               .anneal_strategy = strategy});
                       },
                       closed([=](Real base, int e, std::size_t group) {
                         const Real end = ends[group];
                         if (e >= epochs) return end;
                         const Real part = Real(e) / epochs;
                         return cos ? cosine_between(base, end, part)
                                    : base + (end - base) * part;
                       }),
                       1e-12};
  };
  return {row("SWALR", "cos", 100), row("SWALR, linear", "linear", 40)};
}

}  // namespace

const std::vector<ScheduleRow>& rows() {
  static const std::vector<ScheduleRow> all = [] {
    std::vector<ScheduleRow> joined;
    for (const auto& some :
         {factor_rows(), ramp_rows(), cyclic_rows(), one_cycle_rows(),
          composite_rows(), plateau_rows(), swa_rows()}) {
      joined.insert(joined.end(), some.begin(), some.end());
    }
    return joined;
  }();
  return all;
}

}  // namespace lr_testing
