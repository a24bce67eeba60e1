// Optimizers whose step is more than one launch: one that fails has changed nothing.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/optim_products/muon.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;

namespace {

using Values = std::vector<std::vector<double>>;

template <class Optimizer>
struct Training {
  Tensor param = full({2, 3}, 1.0);
  Optimizer optimizer{{param}, {.lr = 0.1}};

  void set_gradient(double value) { param.set_grad(full({2, 3}, value)); }
  Values values() const {
    Values all = {param.to_vector()};
    for (const auto& [name, state] : optimizer.states(param)) {
      all.push_back(state.to_vector());
    }
    return all;
  }
};

struct Stop {};

template <class Optimizer>
void check_failed_steps() {
  Training<Optimizer> training;
  Training<Optimizer> undisturbed;
  bool stops = false;
  auto step = compile(
      [&] {
        training.optimizer.step();
        if (stops) throw Stop();
      },
      {.policy = Policy::fail_on_recompile});
  for (Training<Optimizer>* each : {&training, &undisturbed}) {
    each->set_gradient(0.5);
  }
  step();
  undisturbed.optimizer.step();
  const Values before = training.values();

  training.set_gradient(3);
  undisturbed.set_gradient(3);
  stops = true;
  CHECK_THROWS_AS(step(), Stop);
  CHECK(training.values() == before);
  CHECK(training.optimizer.steps() == 1);

  stops = false;
  training.optimizer.param_groups[0]["lr"] = 0.05;
  CHECK_THROWS_AS(step(), RecompileError);
  CHECK(training.values() == before);
  CHECK(training.optimizer.steps() == 1);

  training.optimizer.param_groups[0]["lr"] = 0.1;
  step();
  undisturbed.optimizer.step();
  CHECK(training.values() == undisturbed.values());
}

}  // namespace

TEST_CASE("a step of Adafactor that fails has changed nothing") {
  check_failed_steps<Adafactor>();
}

TEST_CASE("a step of Muon that fails has changed nothing") {
  check_failed_steps<Muon>();
}
