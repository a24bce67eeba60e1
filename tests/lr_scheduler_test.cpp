#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "error.h"
#include "lr_scheduler.h"
#include "lr_scheduler_rows.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "testing.h"

using namespace fuse;
using namespace lr_testing;
using testing::contains;
using testing::message_of;

namespace {

constexpr std::array<double, 3> kRates = {0.01, 0.3, 1e-4};
constexpr int kEpochs = 1001;

// Three groups with rates of their own.
template <class Kind = Adam, class Options = AdamOptions>
Kind make_optimizer(const std::array<double, 3>& rates = kRates,
                    bool tensors = false, DType dtype = DType::float32) {
  std::vector<typename Kind::Group> groups;
  for (const double rate : rates) {
    Options options;
    options.lr = tensors ? Scalar(tensor(rate, dtype)) : Scalar(rate);
    groups.emplace_back(std::vector<Tensor>{zeros({1})}, options);
  }
  return Kind(std::move(groups));
}

Adam one_group(const Scalar& rate = 0.01) {
  return Adam({zeros({1})}, {.lr = rate});
}

std::vector<double> values(Optimizer& opt, const std::string& name) {
  std::vector<double> all;
  for (std::size_t g = 0; g < opt.group_count(); ++g) {
    all.push_back(opt.group(g)[name].value());
  }
  return all;
}

void set_values(Optimizer& opt, const std::string& name,
                const std::vector<double>& wanted) {
  for (std::size_t g = 0; g < wanted.size(); ++g) {
    opt.group(g)[name].assign(wanted[g]);
  }
}

template <class Make>
std::string error_of(Make make) {
  Adam opt = make_optimizer();
  return message_of<Error>([&] { make(opt); });
}

// The largest difference from a row's schedule, as a share of the largest rate.
double worst_difference(const ScheduleRow& row) {
  Adam opt = make_optimizer();
  const Made made = row.make(opt, row.momentum != nullptr);
  std::vector<Rates> wanted;
  for (std::size_t g = 0; g < kRates.size(); ++g) {
    wanted.push_back(row.rates(kRates[g], g, kEpochs));
  }
  double worst = 0;
  for (int e = 0; e < kEpochs; ++e) {
    if (e > 0) made.step(e);
    for (std::size_t g = 0; g < kRates.size(); ++g) {
      const Real top = *std::max_element(wanted[g].begin(), wanted[g].end());
      const Real difference =
          made.scheduler().get_last_lr()[g] - wanted[g][std::size_t(e)];
      worst = std::max(worst, double(std::abs(difference) / top));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("every scheduler follows its schedule for 1,000 steps") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    CHECK(worst_difference(row) <= row.tolerance);
  }
}

TEST_CASE("momentum or betas[0] moves against the rate") {
  for (const ScheduleRow& row : rows()) {
    if (!row.momentum) continue;
    CAPTURE(row.name);
    Adam adam = make_optimizer();
    SGD sgd = make_optimizer<SGD, SGDOptions>();
    const Made of_adam = row.make(adam, true);
    const Made of_sgd = row.make(sgd, true);
    double worst = 0;
    for (int e = 0; e < kEpochs; ++e) {
      if (e > 0) of_adam.step(e);
      if (e > 0) of_sgd.step(e);
      CHECK(values(adam, "betas[0]") == values(sgd, "momentum"));
      for (std::size_t g = 0; g < kRates.size(); ++g) {
        const double now = sgd.group(g)["momentum"].value();
        worst =
            std::max(worst, std::abs(double(Real(now) - row.momentum(e, g))));
      }
    }
    CHECK(worst < 1e-13);
    CHECK(values(adam, "betas[1]") == std::vector<double>(3, 0.999));
  }
}

TEST_CASE("without cycle_momentum the momentum stays") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    Adam opt = make_optimizer();
    const Made made = row.make(opt, false);
    for (int e = 1; e < 50; ++e) made.step(e);
    CHECK(values(opt, "betas[0]") == std::vector<double>(3, 0.9));
  }
}

TEST_CASE("LinearLR has torch's digits to the last") {
  Adam opt = one_group();
  LinearLR sched(opt, {.total_iters = 5});
  const std::vector<double> wanted = {
      0.003333333333333333, 0.004666666666666667, 0.006000000000000001,
      0.007333333333333335, 0.00866666666666667,  0.010000000000000002};
  for (std::size_t e = 0; e < wanted.size(); ++e) {
    CHECK(sched.last_epoch() == std::int64_t(e));
    CHECK(opt.group(0)["lr"].value() == wanted[e]);
    sched.step();
  }
  CHECK(sched.get_last_lr()[0] == wanted.back());
}

TEST_CASE("a tensor rate is written in place and prints as in torch") {
  const Tensor rate = tensor(0.01);
  Adam opt = one_group(rate);
  LinearLR sched(opt, {.total_iters = 5});
  CHECK(to_string(rate) == "tensor(0.0033)");
  for (const char* const text :
       {"tensor(0.0047)", "tensor(0.0060)", "tensor(0.0073)", "tensor(0.0087)",
        "tensor(0.0100)", "tensor(0.0100)"}) {
    sched.step();
    CHECK(to_string(rate) == text);
    CHECK(sched.get_last_lr()[0] == rate.item());
  }
  CHECK(opt.group(0)["lr"].tensor().impl() == rate.impl());
  CHECK(opt.group(0).initial_lr == double(0.01F));
  CHECK(sched.base_lrs()[0] == double(0.01F));
}

TEST_CASE("a float32 rate is rounded once a step, a float64 one not at all") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    // Numbers that float32 holds: all three begin alike.
    const std::array<double, 3> begin = {0.5, 0.25, 0.125};
    Adam numbers = make_optimizer(begin);
    Adam doubles = make_optimizer(begin, true, DType::float64);
    Adam floats = make_optimizer(begin, true);
    const Made made = row.make(numbers, false);
    const Made of_doubles = row.make(doubles, false);
    const Made of_floats = row.make(floats, false);
    for (int e = 1; e < 300; ++e) {
      made.step(e);
      of_doubles.step(e);
      of_floats.step(e);
      CHECK(values(numbers, "lr") == values(doubles, "lr"));
      for (std::size_t g = 0; g < begin.size(); ++g) {
        const double exact = numbers.group(g)["lr"].value();
        CHECK(std::abs(floats.group(g)["lr"].value() - exact) <=
              2e-5 * begin[g]);
      }
    }
  }
}

TEST_CASE("a rate of zero stays zero where a schedule multiplies") {
  for (const ScheduleRow& row : rows()) {
    // These have rates of their own, or go to a smallest rate above zero.
    if (row.momentum || contains(row.name, "Cosine")) continue;
    CAPTURE(row.name);
    Adam opt = make_optimizer({0, 0, 0});
    const Made made = row.make(opt, false);
    for (int e = 1; e < kEpochs; ++e) made.step(e);
    CHECK(values(opt, "lr") == std::vector<double>(3, 0));
  }
}

TEST_CASE("changes from outside take part") {
  Adam opt = one_group();
  ExponentialLR sched(opt, {.gamma = 0.5});
  sched.step();
  opt.group(0)["lr"].assign(1.0);
  sched.step();
  CHECK(opt.group(0)["lr"].value() == 0.5);
  LambdaLR absolute(opt, {.lr_lambda = [](std::int64_t) { return 3.0; }});
  CHECK(opt.group(0)["lr"].value() == 3 * 0.01);
}

TEST_CASE("the second scheduler starts from the first one's initial rate") {
  Adam opt = one_group();
  LinearLR first(opt, {.start_factor = 0.1, .total_iters = 5});
  ExponentialLR second(opt, {.gamma = 0.5});
  CHECK(opt.group(0).initial_lr == 0.01);
  CHECK(second.base_lrs()[0] == 0.01);
  CHECK(second.get_last_lr()[0] == 0.01 * 0.1);
}

TEST_CASE("a resumed scheduler needs initial_lr and continues") {
  Adam opt = one_group(0.005);
  CHECK(contains(message_of<Error>([&] {
                   LinearLR bad(opt, {.total_iters = 50, .last_epoch = 20});
                 }),
                 "param 'initial_lr' is not specified in param_groups[0]"));
  opt.group(0).initial_lr = 0.01;
  LinearLR sched(opt, {.total_iters = 50, .last_epoch = 20});
  CHECK(sched.last_epoch() == 21);
  CHECK(opt.group(0)["lr"].value() == 0.005);
  CHECK(sched.base_lrs()[0] == 0.01);
  CHECK(contains(error_of([](Adam& o) {
                   ExponentialLR bad(o, {.gamma = 0.9, .last_epoch = -2});
                 }),
                 "last_epoch"));
}

TEST_CASE("CosineAnnealingWarmRestarts goes to any epoch") {
  Adam opt = one_group();
  CosineAnnealingWarmRestarts sched(opt, {.T_0 = 3, .T_mult = 5});
  for (const double restart : {3.0, 18.0, 93.0, 468.0, 2343.0, 11718.0}) {
    sched.step(restart);
    CHECK(sched.get_last_lr()[0] == 0.01);
    sched.step(std::nextafter(restart, 0));
    CHECK(sched.get_last_lr()[0] < 1e-15);
    CHECK(sched.last_epoch() == std::int64_t(restart) - 1);
  }
  sched.step(10.5);
  CHECK(sched.get_last_lr()[0] == doctest::Approx(0.005).epsilon(1e-14));
  sched.step();  // epoch 11, as the whole epoch before is 10
  CHECK(sched.last_epoch() == 11);
  CHECK(contains(message_of<Error>([&] { sched.step(-1.0); }),
                 "Expected non-negative epoch, but got -1"));
  CHECK(sched.last_epoch() == 11);
}

TEST_CASE("OneCycleLR ends with an error that changes nothing") {
  Adam opt = one_group();
  OneCycleLR sched(opt, {.max_lr = 0.1, .total_steps = 10});
  for (int i = 0; i < 10; ++i) sched.step();
  const SchedulerState before = sched.state();
  const std::vector<double> momentum = values(opt, "betas[0]");
  CHECK(contains(message_of<Error>([&] { sched.step(); }),
                 "Tried to step 11 times. The specified number of total steps "
                 "is 10"));
  CHECK(sched.state() == before);
  CHECK(values(opt, "betas[0]") == momentum);
}

TEST_CASE("a rule that throws changes no group") {
  Adam opt = make_optimizer();
  LambdaLR sched(opt, {.lr_lambda = {[](std::int64_t) { return 1.0; },
                                     [](std::int64_t e) {
                                       if (e > 1) throw Error("enough");
                                       return 0.5;
                                     },
                                     [](std::int64_t) { return 2.0; }}});
  sched.step();
  set_values(opt, "lr", {1, 2, 3});
  CHECK(message_of<Error>([&] { sched.step(); }) == "enough");
  CHECK(values(opt, "lr") == std::vector<double>{1, 2, 3});
  CHECK(sched.last_epoch() == 1);
}

// ---- schedulers of schedulers -----------------------------------------------

TEST_CASE("SequentialLR may hold schedulers of schedulers") {
  Adam opt = make_optimizer();
  LinearLR warmup(opt, {.start_factor = 0.5, .total_iters = 10});
  ConstantLR constant(opt, {.factor = 0.25, .total_iters = 8});
  ExponentialLR decay(opt, {.gamma = 0.9});
  ChainedScheduler chain({&constant, &decay});
  ConstantLR low(opt, {.factor = 0.125, .total_iters = 100});
  StepLR stairs(opt, {.step_size = 3, .gamma = 0.5});
  SequentialLR inner(opt, {.schedulers = {&low, &stairs}, .milestones = {5}});
  SequentialLR sched(
      opt, {.schedulers = {&warmup, &chain, &inner}, .milestones = {10, 30}});
  for (int e = 0; e < 60; ++e) {
    CAPTURE(e);
    CHECK(sched.last_epoch() == e);
    for (std::size_t g = 0; g < 3; ++g) {
      double factor = 0.5 + 0.05 * e;
      if (e >= 10) factor = (e < 18 ? 0.25 : 1) * std::pow(0.9, e - 10);
      if (e >= 30) factor = e < 35 ? 0.125 : std::pow(0.5, (e - 35) / 3);
      CHECK(opt.group(g)["lr"].value() ==
            doctest::Approx(kRates[g] * factor).epsilon(1e-13));
    }
    sched.step();
  }
  CHECK(inner.last_epoch() == 30);
  CHECK(chain.last_epoch() == 19);
}

TEST_CASE("a SequentialLR or ChainedScheduler may come first") {
  Adam opt = one_group(1.0);
  LinearLR up(opt, {.start_factor = 0.5, .total_iters = 2});
  ExponentialLR down(opt, {.gamma = 0.5});
  SequentialLR inner(opt, {.schedulers = {&up, &down}, .milestones = {2}});
  ConstantLR half(opt, {.factor = 0.5, .total_iters = 100});
  SequentialLR outer(opt, {.schedulers = {&inner, &half}, .milestones = {4}});
  for (const double wanted : {0.5, 0.75, 1.0, 0.5, 0.5, 0.5}) {
    CHECK(opt.group(0)["lr"].value() == doctest::Approx(wanted).epsilon(1e-15));
    outer.step();
  }

  Adam other = one_group(1.0);
  ConstantLR low(other, {.factor = 0.25, .total_iters = 2});
  StepLR stairs(other, {.step_size = 1, .gamma = 0.5});
  ChainedScheduler chain({&low, &stairs});
  ExponentialLR last(other, {.gamma = 0.5});
  SequentialLR both(other, {.schedulers = {&chain, &last}, .milestones = {3}});
  for (const double wanted : {0.25, 0.125, 0.25, 1.0, 0.5}) {
    CHECK(other.group(0)["lr"].value() == wanted);
    both.step();
  }
}

TEST_CASE("milestones may be 0 or stand twice") {
  Adam opt = one_group(1.0);
  ConstantLR never(opt, {.factor = 0.5, .total_iters = 100});
  StepLR first(opt, {.step_size = 1, .gamma = 0.5});
  ConstantLR skipped(opt, {.factor = 0.125, .total_iters = 100});
  ConstantLR last(opt, {.factor = 0.25, .total_iters = 100});
  SequentialLR sched(opt, {.schedulers = {&never, &first, &skipped, &last},
                           .milestones = {0, 3, 3}});
  for (const double wanted : {0.5, 0.5, 0.25, 0.25, 0.25}) {
    CHECK(opt.group(0)["lr"].value() == wanted);
    sched.step();
  }
}

// ---- state ------------------------------------------------------------------

TEST_CASE("a restored scheduler continues with the same bits") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    const bool momentum = row.momentum != nullptr;
    Adam opt = make_optimizer();
    const Made made = row.make(opt, momentum);
    for (int e = 1; e <= 123; ++e) made.step(e);
    const SchedulerState saved = made.scheduler().state();
    const std::vector<double> lrs = values(opt, "lr");
    const std::vector<double> betas = values(opt, "betas[0]");

    // As in a fresh process; it begins with rates of its own.
    Adam fresh_opt = make_optimizer({0.7, 0.8, 0.9});
    const Made fresh = row.make(fresh_opt, momentum);
    CHECK(fresh.scheduler().state() != saved);
    fresh.scheduler().load_state(saved);
    set_values(fresh_opt, "lr", lrs);
    set_values(fresh_opt, "betas[0]", betas);
    CHECK(fresh.scheduler().state() == saved);
    CHECK(fresh.scheduler().last_epoch() == 123);
    CHECK(fresh.scheduler().get_last_lr() == lrs);
    for (int e = 124; e < 700; ++e) {
      made.step(e);
      fresh.step(e);
      REQUIRE(values(opt, "lr") == values(fresh_opt, "lr"));
      REQUIRE(values(opt, "betas[0]") == values(fresh_opt, "betas[0]"));
    }
    CHECK(fresh.scheduler().state() == made.scheduler().state());
  }
}

TEST_CASE("a state brings the initial rates to a later scheduler") {
  Adam opt = one_group();
  LinearLR sched(opt, {.total_iters = 5});
  Adam fresh = one_group(0.5);
  LinearLR restored(fresh, {.total_iters = 5});
  restored.load_state(sched.state());
  CHECK(fresh.group(0).initial_lr == 0.01);
}

namespace {

using Damage = std::function<void(SchedulerState&)>;

// Ways in which a state may be no state of a scheduler.
std::vector<std::pair<Damage, const char*>> damages() {
  return {
      {[](SchedulerState& s) { s.kind = "Foreign"; }, "cannot load the state"},
      {[](SchedulerState& s) { s.values.erase("last_epoch"); },
       "\"last_epoch\" is missing"},
      {[](SchedulerState& s) { s.values["more"] = {1}; }, "named values"},
      {[](SchedulerState& s) { s.values["last_lr"].pop_back(); },
       "2 numbers instead of 3"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {}; },
       "0 numbers instead of 1"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {1.5}; }, "no count"},
      {[](SchedulerState& s) {
         s.values["last_epoch"] = {std::numeric_limits<double>::quiet_NaN()};
       },
       "no count"},
      {[](SchedulerState& s) { s.values["last_epoch"] = {1e300}; }, "no count"},
      {[](SchedulerState& s) { s.schedulers.emplace_back(); },
       "schedulers inside"},
  };
}

}  // namespace

TEST_CASE("a state that does not fit is refused and changes nothing") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    Adam opt = make_optimizer();
    const Made made = row.make(opt, false);
    const SchedulerState start = made.scheduler().state();
    made.step(1);
    const SchedulerState before = made.scheduler().state();
    for (const auto& [damage, message] : damages()) {
      CAPTURE(message);
      // In the last part of all, so that the others were read already.
      SchedulerState bad = start;
      damage(bad.schedulers.empty() ? bad : bad.schedulers.back());
      if (row.name == "ChainedScheduler") bad.values["last_epoch"] = {77};
      CHECK(
          contains(message_of<Error>([&] { made.scheduler().load_state(bad); }),
                   message));
      CHECK(made.scheduler().state() == before);
    }
  }
}

TEST_CASE("a fresh ReduceLROnPlateau keeps its infinite best") {
  Adam opt = one_group();
  ReduceLROnPlateau lowest(opt);
  ReduceLROnPlateau highest(opt, {.mode = "max"});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(lowest.state().values.at("best") == std::vector{infinity});
  CHECK(highest.state().values.at("best") == std::vector{-infinity});
  lowest.step(3);
  CHECK(lowest.best() == 3);
  lowest.load_state(highest.state());
  CHECK(lowest.best() == -infinity);
}

// ---- plateau ----------------------------------------------------------------

TEST_CASE("a NaN metric is no improvement, a small change is not made") {
  Adam opt = make_optimizer({1.0, 1e-8, 1e-9});
  ReduceLROnPlateau sched(opt, {.factor = 0.5, .patience = 1, .cooldown = 1});
  sched.step(1.0);
  sched.step(std::nan(""));
  CHECK(sched.num_bad_epochs() == 1);
  CHECK(sched.best() == 1.0);
  sched.step(0.99999);  // less than the threshold better
  CHECK(values(opt, "lr") == std::vector<double>{0.5, 1e-8, 1e-9});
  CHECK(sched.in_cooldown());
  sched.step(2.0);
  CHECK(sched.num_bad_epochs() == 0);
  CHECK_FALSE(sched.in_cooldown());
}

// ---- errors -----------------------------------------------------------------

namespace {

template <class Kind, class Options>
std::string refusal(Options options) {
  return error_of([&](Adam& opt) { Kind refused(opt, options); });
}

}  // namespace

TEST_CASE("momentum cannot be cycled where there is none") {
  const char* const message =
      "optimizer must support momentum or beta1 with `cycle_momentum` option "
      "enabled";
  for (const ScheduleRow& row : rows()) {
    if (!row.momentum) continue;
    CAPTURE(row.name);
    auto opt = make_optimizer<Adagrad, AdagradOptions>();
    CHECK(contains(message_of<Error>([&] { row.make(opt, true); }), message));
    CHECK(values(opt, "lr") ==
          std::vector<double>(kRates.begin(), kRates.end()));
    CHECK_FALSE(opt.group(0).initial_lr.has_value());
    CHECK_NOTHROW(row.make(opt, false));
  }
}

TEST_CASE("factors and counts out of bounds are refused in torch's words") {
  const double nan = std::nan("");
  for (const double factor : {-0.1, 1.1, nan}) {
    CHECK(contains(
        refusal<ConstantLR>(ConstantLROptions{.factor = factor}),
        "Constant multiplicative factor expected to be between 0 and 1"));
    CHECK(contains(
        refusal<LinearLR>(LinearLROptions{.end_factor = factor}),
        "Ending multiplicative factor expected to be between 0 and 1"));
  }
  for (const double factor : {0.0, 1.1, nan}) {
    CHECK(contains(refusal<LinearLR>(LinearLROptions{.start_factor = factor}),
                   "Starting multiplicative factor expected to be greater "
                   "than 0 and less or equal to 1"));
  }
  const char* const negative = "total_iters cannot be negative, but is -1";
  CHECK(contains(refusal<ConstantLR>(ConstantLROptions{.total_iters = -1}),
                 negative));
  CHECK(contains(refusal<LinearLR>(LinearLROptions{.total_iters = -1}),
                 negative));
  CHECK(contains(refusal<PolynomialLR>(PolynomialLROptions{.total_iters = -1}),
                 negative));
  CHECK(contains(refusal<PolynomialLR>(PolynomialLROptions{.power = -1}),
                 "power cannot be negative"));
  CHECK(contains(
      refusal<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.factor = 1}),
      "Factor should be < 1.0."));
  CHECK(contains(refusal<StepLR>(StepLROptions{}), "positive step_size"));
  CHECK(contains(refusal<CosineAnnealingLR>(CosineAnnealingLROptions{}),
                 "positive T_max"));
  CHECK(contains(refusal<ExponentialLR>(ExponentialLROptions{}),
                 "ExponentialLR needs gamma"));
  using Restarts = CosineAnnealingWarmRestarts;
  using RestartsOptions = CosineAnnealingWarmRestartsOptions;
  CHECK(contains(refusal<Restarts>(RestartsOptions{}),
                 "Expected positive integer T_0, but got 0"));
  CHECK(contains(refusal<Restarts>(RestartsOptions{.T_0 = 1, .T_mult = 0}),
                 "Expected integer T_mult >= 1, but got 0"));
}

TEST_CASE("ConstantLR cannot go back from zero") {
  Adam opt = one_group();
  ConstantLR sched(opt, {.factor = 0, .total_iters = 2});
  sched.step();
  CHECK(contains(message_of<Error>([&] { sched.step(); }), "factor of 0"));
  CHECK(opt.group(0)["lr"].value() == 0);
}

TEST_CASE("lists must fit the groups") {
  const LRLambda same = [](std::int64_t) { return 1.0; };
  CHECK(contains(refusal<LambdaLR>(LambdaLROptions{.lr_lambda = {same, same}}),
                 "Expected 3 lr_lambdas, but got 2"));
  CHECK(contains(
      refusal<MultiplicativeLR>(MultiplicativeLROptions{.lr_lambda = {same}}),
      "Expected 3 lr_lambdas, but got 1"));
  CHECK(contains(refusal<LambdaLR>(LambdaLROptions{}), "needs lr_lambda"));
  CHECK(contains(refusal<LambdaLR>(LambdaLROptions{.lr_lambda = LRLambda()}),
                 "lr_lambda should be a function"));
  CHECK(contains(
      refusal<CyclicLR>(CyclicLROptions{.base_lr = 0.1, .max_lr = {1, 2}}),
      "max_lr must have the same length as optimizer.param_groups. max_lr has "
      "2 values, param_groups has 3."));
  CHECK(contains(refusal<CyclicLR>(CyclicLROptions{.max_lr = 1}),
                 "CyclicLR needs base_lr"));
  CHECK(contains(refusal<OneCycleLR>(OneCycleLROptions{.total_steps = 3}),
                 "OneCycleLR needs max_lr"));
  CHECK(contains(
      refusal<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.min_lr = {1, 2}}),
      "expected 3 min_lrs, got 2"));
}

TEST_CASE("milestones must be in order") {
  CHECK(contains(refusal<MultiStepLR>(MultiStepLROptions{.milestones = {3, 2}}),
                 "list of increasing"));
  CHECK(contains(refusal<MultiStepLR>(MultiStepLROptions{.milestones = {-3}}),
                 "cannot be negative, but one is -3"));
}

TEST_CASE("modes must be known") {
  const auto cyclic = [](const char* mode, const char* scale_mode) {
    return refusal<CyclicLR>(CyclicLROptions{
        .base_lr = 0.1, .max_lr = 1, .mode = mode, .scale_mode = scale_mode});
  };
  CHECK(contains(cyclic("square", "cycle"),
                 "mode is invalid and scale_fn is None"));
  CHECK(contains(cyclic("triangular", "epoch"), "scale_mode"));
  CHECK(contains(refusal<CyclicLR>(CyclicLROptions{
                     .base_lr = 0.1, .max_lr = 1, .step_size_down = 0}),
                 "at least 1"));
  CHECK(contains(
      refusal<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.mode = "mean"}),
      "mode mean is unknown!"));
  CHECK(contains(refusal<ReduceLROnPlateau>(
                     ReduceLROnPlateauOptions{.threshold_mode = "log"}),
                 "threshold mode log is unknown!"));
}

TEST_CASE("OneCycleLR refuses what torch refuses") {
  const auto one_cycle = [](OneCycleLROptions options) {
    options.max_lr = 0.1;
    return refusal<OneCycleLR>(options);
  };
  CHECK(contains(
      one_cycle({}),
      "You must define either total_steps OR (epochs AND steps_per_epoch)"));
  CHECK(contains(one_cycle({.epochs = 3}), "You must define"));
  CHECK(contains(one_cycle({.total_steps = 0}),
                 "Expected positive integer total_steps, but got 0"));
  CHECK(contains(one_cycle({.epochs = -2, .steps_per_epoch = 3}),
                 "Expected positive integer epochs, but got -2"));
  CHECK(contains(one_cycle({.epochs = 2, .steps_per_epoch = 0}),
                 "Expected positive integer steps_per_epoch, but got 0"));
  CHECK(contains(one_cycle({.total_steps = 9, .pct_start = 1.5}),
                 "Expected float between 0 and 1 pct_start, but got 1.5"));
  CHECK(contains(one_cycle({.total_steps = 9, .anneal_strategy = "log"}),
                 "anneal_strategy must be one of 'cos' or 'linear', instead "
                 "got log"));
  CHECK(contains(one_cycle({.total_steps = 4, .pct_start = 0.25}),
                 "a phase has no length"));
}

TEST_CASE("SequentialLR and ChainedScheduler refuse what torch refuses") {
  Adam opt = make_optimizer();
  Adam other = make_optimizer();
  StepLR a(opt, {.step_size = 3});
  StepLR b(opt, {.step_size = 3});
  StepLR foreign(other, {.step_size = 3});
  const auto sequence = [&](Optimizer& of, SchedulerList schedulers,
                            std::vector<std::int64_t> milestones) {
    return message_of<Error>([&] {
      SequentialLR refused(of, {.schedulers = std::move(schedulers),
                                .milestones = std::move(milestones)});
    });
  };
  CHECK(contains(sequence(opt, {}, {}), "at least one scheduler"));
  CHECK(contains(sequence(opt, {&a, nullptr}, {1}), "at index 1 is null"));
  CHECK(contains(sequence(opt, {&a, &foreign}, {1}),
                 "belong to the same optimizer, but got scheduler StepLR at "
                 "index 1"));
  CHECK(contains(sequence(other, {&a, &b}, {1}), "is not the one"));
  CHECK(contains(sequence(opt, {&a, &b}, {1, 2}),
                 "number of schedulers provided to be one more than the number "
                 "of milestone points, but got number of schedulers 2 and the "
                 "number of milestones to be equal to 2"));
  CHECK(contains(sequence(opt, {&a, &b, &a}, {2, 1}), "increasing"));
  CHECK(contains(sequence(opt, {&a, &b}, {-1}), "increasing"));
  CHECK(contains(message_of<Error>([] { ChainedScheduler refused({}); }),
                 "at least one scheduler"));
  CHECK(contains(
      message_of<Error>([&] { ChainedScheduler refused({&a, &foreign}); }),
      "belong to the same optimizer"));
  CHECK(a.last_epoch() == 0);
}

TEST_CASE("groups that come after the scheduler are an error") {
  Adam opt = make_optimizer();
  StepLR sched(opt, {.step_size = 3});
  opt.param_groups.emplace_back(std::vector<Tensor>{zeros({1})});
  CHECK(contains(message_of<Error>([&] { sched.step(); }),
                 "has 4 parameter groups, but had 3"));
}

// ---- a scheduler of one's own -----------------------------------------------

namespace {

// The example of scheduler.h.
struct HalveLROptions {
  static constexpr const char* name = "HalveLR";
  std::int64_t every = 10;
  std::int64_t last_epoch = -1;

  void validate(std::size_t /*groups*/) const {
    if (every < 1) throw Error("HalveLR: every must be at least 1");
  }
  double next_lr(const Moment& now) const {
    return now.epoch % every == 0 && !now.initial ? now.lr / 2 : now.lr;
  }
};
using HalveLR = ScheduledBy<HalveLROptions>;

}  // namespace

TEST_CASE("a struct with its rule is a scheduler") {
  Adam opt = one_group(1.0);
  HalveLR sched(opt, {.every = 2});
  CHECK(sched.name() == "HalveLR");
  CHECK(sched.options().every == 2);
  for (const double wanted : {1.0, 1.0, 0.5, 0.5, 0.25}) {
    CHECK(sched.get_last_lr()[0] == wanted);
    sched.step();
  }
  CHECK(contains(message_of<Error>([&] { HalveLR bad(opt, {.every = 0}); }),
                 "at least 1"));
}
