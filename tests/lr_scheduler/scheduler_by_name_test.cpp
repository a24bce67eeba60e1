#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/harness/schedule_options.h"
#include "fusebook/optim/adagrad.h"
#include "fusebook/optim/adam.h"
#include "fusebook/optim/sgd.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

TEST_CASE("each name makes its scheduler, and it moves the rates in time") {
  CHECK(scheduler_names().size() == 10);
  for (const std::string& name : scheduler_names()) {
    for (const std::int64_t steps : {4, 20}) {
      CAPTURE(name);
      CAPTURE(steps);
      Adam adam({{make_params({{3}}, 1), {.lr = 0.01}},
                 {make_params({{4}}, 2), {.lr = 0.02}}});
      auto step = compile([&] { adam.step(); });
      step();
      const auto sched = make_scheduler(name, adam, steps);
      CHECK(sched->name() == name);
      CHECK(sched->last_epoch() == 0);
      std::set<double> rates;
      for (std::int64_t i = 0; i < steps; ++i) {
        rates.insert(sched->get_last_lr()[0]);
        CHECK(sched->get_last_lr()[1] / sched->get_last_lr()[0] ==
              doctest::Approx(2));
        CHECK(sched->get_last_lr()[0] < 0.01 * (1 + 1e-9));
        step();
        sched->step();
      }
      CHECK(rates.size() >= 2);
      CHECK(step.counters().compilations <= 2);
    }
  }
}

TEST_CASE("cycles take the momentum along where there is one") {
  for (const std::string name : {"CyclicLR", "OneCycleLR"}) {
    SGD sgd(make_params({{3}}, 1), {.lr = 0.01, .momentum = 0.5});
    const auto cycled = make_scheduler(name, sgd, 20);
    CHECK(sgd.param_groups[0]["momentum"].value() >= 0.8);
    Adagrad adagrad(make_params({{3}}, 1), {.lr = 0.01});
    CHECK_NOTHROW(make_scheduler(name, adagrad, 20));
  }
}

TEST_CASE("another name, or a schedule too short, is an error") {
  Adam adam(make_params({{3}}, 1));
  const auto error_of = [&](const std::string& name, std::int64_t steps) {
    return testing::message_of<Error>(
        [&] { make_scheduler(name, adam, steps); });
  };
  CHECK(testing::contains(
      error_of("LambdaLR", 20),
      "unknown scheduler \"LambdaLR\"; use one of ConstantLR, "));
  CHECK(error_of("LinearLR", 3) ==
        "make_scheduler: a schedule needs at least 4 steps, not 3");
}

TEST_CASE("the options offer what there is") {
  const ChoiceOption scheduler = scheduler_option("LinearLR");
  CHECK(scheduler.value == "LinearLR");
  CHECK(scheduler.choices == scheduler_names());
  const ChoiceOption policy = policy_option();
  CHECK(policy.value == "promote");
  for (const std::string& name : policy.choices) {
    CHECK_NOTHROW(policy_named(name));
  }
  CHECK(policy.choices.size() == 3);
}
