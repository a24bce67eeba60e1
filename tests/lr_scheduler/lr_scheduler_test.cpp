#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "fusebook/lr_scheduler/all.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/sgd.h"
#include "fusebook/support/error.h"
#include "support/halve_lr.h"
#include "support/lr_scheduler_rows.h"
#include "support/testing.h"

using namespace fuse;
using namespace lr_testing;
using testing::contains;
using testing::message_of;

namespace {

constexpr int kEpochs = 1001;

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
    if (contains(row.name, "SWALR")) continue;
    CAPTURE(row.name);
    Adam opt = make_optimizer({0, 0, 0});
    const Made made = row.make(opt, false);
    for (int e = 1; e < kEpochs; ++e) made.step(e);
    CHECK(values(opt, "lr") == std::vector<double>(3, 0));
  }
}

TEST_CASE("without epochs to get there, a rate for averages holds at once") {
  for (const char* strategy : {"cos", "linear"}) {
    Adam opt = one_group();
    SWALR sched(
        opt, {.swa_lr = 0.05, .anneal_epochs = 0, .anneal_strategy = strategy});
    CHECK(opt.group(0)["lr"].value() == 0.05);
    for (int e = 0; e < 3; ++e) sched.step();
    CHECK(opt.group(0)["lr"].value() == 0.05);
  }
  Adam opt = one_group();
  CHECK(contains(message_of<Error>([&] { SWALR bad(opt); }), "swa_lr"));
  CHECK(contains(message_of<Error>([&] {
                   SWALR bad(opt, {.swa_lr = 1.0, .anneal_epochs = -1});
                 }),
                 "anneal_epochs must not be negative, but is -1"));
  CHECK(contains(message_of<Error>([&] {
                   SWALR bad(opt, {.swa_lr = 1.0, .anneal_strategy = "exp"});
                 }),
                 "anneal_strategy must be \"cos\" or \"linear\""));
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

TEST_CASE("cycles have initial rates of their own") {
  Adam opt = one_group();
  CyclicLR cyclic(opt, {.base_lr = 0.002, .max_lr = 0.1});
  CHECK(opt.group(0).initial_lr == 0.002);
  OneCycleLR one(opt, {.max_lr = 0.5, .total_steps = 9, .div_factor = 4});
  CHECK(opt.group(0).initial_lr == 0.125);
  CyclicLR later(opt, {.base_lr = 0.002, .max_lr = 0.1});
  CHECK(opt.group(0).initial_lr == 0.125);
  CHECK(opt.group(0)["lr"].value() == 0.125);
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
  CHECK(contains(message_of<Error>([&] {
                   ExponentialLR bad(opt, {.gamma = 0.9, .last_epoch = -2});
                 }),
                 "last_epoch must be -1"));
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

// ---- schedulers of schedulers -----------------------------------------------

TEST_CASE("any scheduler may begin in the middle of a sequence") {
  for (const ScheduleRow& row : rows()) {
    // One multiplies what it finds, the others need a metric.
    if (row.name == "MultiplicativeLR") continue;
    if (contains(row.name, "Plateau")) continue;
    CAPTURE(row.name);
    Adam opt = make_optimizer();
    ExponentialLR before(opt, {.gamma = 0.5});
    const Made made = row.make(opt, true);
    auto& part = dynamic_cast<LRScheduler&>(made.scheduler());
    SequentialLR sched(opt,
                       {.schedulers = {&before, &part}, .milestones = {4}});
    for (int e = 0; e < 4; ++e) sched.step();
    for (int e = 0; e < 30; ++e) {
      CAPTURE(e);
      CHECK(part.last_epoch() == e);
      for (std::size_t g = 0; g < kRates.size(); ++g) {
        const double wanted = double(row.rates(kRates[g], g, e + 1).back());
        CHECK(opt.group(g)["lr"].value() ==
              doctest::Approx(wanted).epsilon(1e-12));
      }
      sched.step();
    }
  }
}

TEST_CASE("what is due at epoch 0 is done when a sequence comes to it") {
  Adam opt = one_group(1.0);
  ExponentialLR before(opt, {.gamma = 0.25});
  MultiStepLR twice(opt, {.milestones = {0, 0, 9}, .gamma = 0.5});
  ConstantLR over(opt, {.factor = 0.125, .total_iters = 0});
  MultiplicativeLR on(
      opt, {.lr_lambda = [](std::int64_t e) { return double(e + 3); }});
  SequentialLR sched(opt, {.schedulers = {&before, &twice, &over, &on},
                           .milestones = {1, 2, 3}});
  // torch's MultiplicativeLR goes on from the rate that it finds.
  for (const double wanted : {0.25, 1.0, 3.0, 12.0}) {
    sched.step();
    CHECK(opt.group(0)["lr"].value() == wanted);
  }
}

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

TEST_CASE("ReduceLROnPlateau knows what is better in four ways") {
  struct Way {
    const char* mode;
    const char* threshold_mode;
    double just_better;  // than 4, with a threshold of 1/8
  };
  for (const Way& way : {Way{"min", "rel", 3.5}, Way{"min", "abs", 3.875},
                         Way{"max", "rel", 4.5}, Way{"max", "abs", 4.125}}) {
    CAPTURE(way.just_better);
    Adam opt = one_group();
    ReduceLROnPlateau sched(opt, {.mode = way.mode,
                                  .threshold = 0.125,
                                  .threshold_mode = way.threshold_mode});
    sched.step(4);
    sched.step(way.just_better);
    CHECK(sched.best() == 4);
    const double far = way.just_better > 4 ? 1e9 : -1e9;
    sched.step(std::nextafter(way.just_better, far));
    CHECK(sched.best() != 4);
    CHECK(sched.num_bad_epochs() == 0);
  }
}

// ---- a scheduler of one's own -----------------------------------------------

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

// Torch 2.15 gives these rates.
TEST_CASE("CyclicLR after another scheduler starts where that one started") {
  SGD opt({zeros({1})}, {.lr = 0.1, .momentum = 0.9});
  StepLR first(opt, {.step_size = 3});
  CyclicLR sched(opt, {.base_lr = 0.01, .max_lr = 0.2, .step_size_up = 4});
  std::vector<double> rates = {opt.group(0)["lr"].value()};
  for (int i = 0; i < 5; ++i) {
    sched.step();
    rates.push_back(opt.group(0)["lr"].value());
  }
  CHECK(rates == std::vector<double>{0.1, 0.0575, 0.105, 0.15250000000000002,
                                     0.2, 0.15250000000000002});
  CHECK(sched.base_lrs()[0] == 0.01);
  CHECK(opt.group(0).initial_lr == 0.1);
}

TEST_CASE("CyclicLR in a sequence starts from its own base rate") {
  for (const bool cycle_first : {true, false}) {
    SGD opt({zeros({1})}, {.lr = 0.1, .momentum = 0.9});
    ConstantLR constant(opt, {.factor = 0.5, .total_iters = 2});
    CyclicLR cycle(opt, {.base_lr = 0.01, .max_lr = 0.2, .step_size_up = 4});
    const SchedulerList order = cycle_first ? SchedulerList{&cycle, &constant}
                                            : SchedulerList{&constant, &cycle};
    SequentialLR sched(opt, {.schedulers = order, .milestones = {3}});
    std::vector<double> rates = {opt.group(0)["lr"].value()};
    for (int i = 0; i < 5; ++i) {
      sched.step();
      rates.push_back(opt.group(0)["lr"].value());
    }
    CHECK(rates ==
          (cycle_first
               ? std::vector<double>{0.01, 0.0575, 0.105, 0.05, 0.05, 0.1}
               : std::vector<double>{0.05, 0.05, 0.1, 0.01, 0.0575, 0.105}));
  }
}
