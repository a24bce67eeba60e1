#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/adagrad.h"
#include "fusebook/support/error.h"
#include "support/lr_scheduler_rows.h"
#include "support/testing.h"

using namespace fuse;
using namespace lr_testing;
using testing::contains;
using testing::message_of;

namespace {

template <class Make>
std::string error_of(Make make) {
  Adam opt = make_optimizer();
  return message_of<Error>([&] { make(opt); });
}

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
                 "must not be negative, but one is -3"));
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
                 "leaves a phase without steps"));
}

TEST_CASE("SequentialLR and ChainedScheduler refuse what torch refuses") {
  Adam opt = make_optimizer();
  Adam other = make_optimizer();
  StepLR a(opt, {.step_size = 3});
  StepLR b(opt, {.step_size = 3});
  StepLR c(opt, {.step_size = 3});
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
  CHECK(contains(sequence(other, {&a, &b}, {1}),
                 "but they belong to a different one"));
  CHECK(contains(sequence(opt, {&a, &b}, {1, 2}),
                 "number of schedulers provided to be one more than the number "
                 "of milestone points, but got number of schedulers 2 and the "
                 "number of milestones to be equal to 2"));
  CHECK(contains(sequence(opt, {&a, &b, &c}, {2, 1}), "increasing"));
  CHECK(contains(sequence(opt, {&a, &b}, {-1}), "increasing"));
  CHECK(contains(message_of<Error>([] { ChainedScheduler refused({}); }),
                 "at least one scheduler"));
  CHECK(contains(
      message_of<Error>([&] { ChainedScheduler refused({&a, &foreign}); }),
      "belong to the same optimizer"));
  CHECK(a.last_epoch() == 0);
}

TEST_CASE("a scheduler has one place in another one") {
  Adam opt = one_group();
  StepLR a(opt, {.step_size = 3});
  StepLR b(opt, {.step_size = 3});
  const std::string why =
      " are the same StepLR; make a separate scheduler for each place";
  CHECK(message_of<Error>([&] { ChainedScheduler refused({&a, &b, &a}); }) ==
        "ChainedScheduler: the schedulers at index 0 and 2" + why);
  ChainedScheduler chained({&a, &b});
  const auto sequence = [&](SchedulerList list) {
    return message_of<Error>([&] {
      SequentialLR refused(opt,
                           {.schedulers = std::move(list), .milestones = {1}});
    });
  };
  CHECK(sequence({&b, &b}) ==
        "SequentialLR: the schedulers at index 0 and 1" + why);
  CHECK(sequence({&chained, &b}) ==
        "SequentialLR: the schedulers at index 0 and 1" + why);
  CHECK(a.last_epoch() == 0);
}

TEST_CASE("counts of ReduceLROnPlateau are not negative") {
  CHECK(refusal<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.patience = -1}) ==
        "ReduceLROnPlateau: patience must not be negative, but is -1");
  CHECK(refusal<ReduceLROnPlateau>(ReduceLROnPlateauOptions{.cooldown = -2}) ==
        "ReduceLROnPlateau: cooldown must not be negative, but is -2");
}

namespace {

// Adds a group to an optimizer of three.
void add_group(Optimizer& opt) {
  static_cast<Adam&>(opt).add_param_group({zeros({1})}, {{"lr", 0.25}});
}

}  // namespace

TEST_CASE("groups that come after the scheduler are an error that says so") {
  for (const ScheduleRow& row : rows()) {
    CAPTURE(row.name);
    Adam opt = make_optimizer();
    const Made made = row.make(opt, false);
    const SchedulerBase& sched = made.scheduler();
    if (sched.name() == "ReduceLROnPlateau") continue;  // see below
    made.step(1);
    const SchedulerState before = sched.state();
    const std::vector<double> rates = values(opt, "lr");
    add_group(opt);
    const std::string message = message_of<Error>([&] { made.step(2); });
    CHECK(contains(message,
                   ": param_groups[3] was added after this scheduler was made "
                   "and has no initial_lr; set it to the rate from which the "
                   "group's schedule starts, or make the scheduler again"));
    CHECK(sched.state() == before);
    opt.param_groups.pop_back();
    CHECK(values(opt, "lr") == rates);
    CHECK_NOTHROW(made.step(2));
    opt.param_groups.pop_back();
    CHECK(contains(message_of<Error>([&] { made.step(3); }),
                   " the optimizer has 2 parameter groups, but had 3 when this "
                   "scheduler was made; make the scheduler again"));
  }
}

TEST_CASE("a group with an initial rate joins a schedule") {
  Adam opt = make_optimizer();
  StepLR steps(opt, {.step_size = 2, .gamma = 0.5});
  LambdaLR lambda(opt,
                  {.lr_lambda = [](std::int64_t e) { return 1.0 / (e + 1); }});
  steps.step();
  add_group(opt);
  opt.group(3).initial_lr = 8;
  const double others = opt.group(0)["lr"].value();
  steps.step();
  CHECK(opt.group(0)["lr"].value() == others / 2);
  CHECK(opt.group(3)["lr"].value() == 0.125);
  CHECK(steps.get_last_lr().size() == 4);
  lambda.step();
  CHECK(opt.group(3)["lr"].value() == 4);  // from its initial rate

  const LRLambda same = [](std::int64_t) { return 1.0; };
  LambdaLR listed(opt, {.lr_lambda = {same, same, same, same}});
  add_group(opt);
  opt.group(4).initial_lr = 1;
  CHECK(contains(message_of<Error>([&] { listed.step(); }),
                 "Expected 5 lr_lambdas, but got 4"));
  CHECK(listed.last_epoch() == 0);
}

TEST_CASE("composites with a group that came later") {
  Adam opt = make_optimizer();
  ConstantLR warmup(opt, {.factor = 0.5, .total_iters = 2});
  StepLR steps(opt, {.step_size = 2, .gamma = 0.5});
  add_group(opt);
  const auto make = [&] {
    return message_of<Error>([&] {
      SequentialLR sched(opt,
                         {.schedulers = {&warmup, &steps}, .milestones = {1}});
      sched.step();
    });
  };
  CHECK(contains(make(), "param_groups[3] was added after"));
  CHECK(warmup.last_epoch() == 0);
  opt.group(3).initial_lr = 1;
  CHECK(make() == "no error");
  CHECK(opt.group(3)["lr"].value() == 1);

  ReduceLROnPlateau single(opt, {.factor = 0.5, .patience = 0});
  ReduceLROnPlateau listed(opt, {.min_lr = {0, 0, 0, 0}});
  add_group(opt);
  single.step(1);
  single.step(2);
  CHECK(opt.group(4)["lr"].value() == 0.125);
  CHECK(contains(message_of<Error>([&] { listed.step(1); }),
                 "expected 5 min_lrs, got 4"));
  CHECK(listed.last_epoch() == 0);
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
