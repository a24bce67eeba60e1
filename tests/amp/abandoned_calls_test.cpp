// A call that throws has done nothing to the scaler: a compiled one has launched
// nothing.
#include <doctest/doctest.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;

namespace {

struct Training {
  explicit Training(bool throws) : fails(throws) {}

  // Gradients of 1, times the scale.
  void scaled_gradient() { param.set_grad(full({2}, scaler.get_scale())); }

  Tensor param = tensor({1.0, 2.0});
  SGD sgd{{param}, {.lr = 0.5}};
  GradScaler scaler{{.init_scale = 1024, .growth_interval = 1}};
  bool fails;
  Compiled<std::function<void()>> tail = compile(std::function<void()>([this] {
    scaler.unscale_(sgd);
    if (fails) throw std::runtime_error("the user's");
    scaler.step(sgd);
    scaler.update();
  }));
};

}  // namespace

TEST_CASE("a scaler whose compiled call threw can be called again") {
  Training training(true);
  training.scaled_gradient();
  CHECK_THROWS_AS(training.tail(), std::runtime_error);
  CHECK(training.param.grad().to_vector() == std::vector{1024.0, 1024.0});
  CHECK_FALSE(training.scaler.found_inf(training.sgd).has_value());

  training.fails = false;
  training.tail();
  CHECK(training.param.to_vector() == std::vector{0.5, 1.5});
  CHECK(training.scaler.get_scale() == 2048);
}

TEST_CASE("a scaler whose compiled call threw can be called eagerly") {
  Training training(true);
  training.scaled_gradient();
  CHECK_THROWS_AS(training.tail(), std::runtime_error);
  training.scaler.step(training.sgd);
  training.scaler.update();
  CHECK(training.param.to_vector() == std::vector{0.5, 1.5});
}

TEST_CASE("what a scaler was told before a call that throws counts") {
  Training training(false);
  training.scaled_gradient();
  training.scaler.unscale_(training.sgd);
  auto rest = compile([&] {
    training.scaler.step(training.sgd);
    throw std::runtime_error("the user's");
  });
  CHECK_THROWS_AS(rest(), std::runtime_error);
  CHECK(training.param.to_vector() == std::vector{1.0, 2.0});
  CHECK_THROWS_AS(training.scaler.unscale_(training.sgd), Error);
  training.scaler.step(training.sgd);
  training.scaler.update();
  CHECK(training.param.to_vector() == std::vector{0.5, 1.5});
}

TEST_CASE("a step without gradients is no step") {
  Training training(false);
  CHECK_THROWS_AS(training.scaler.step(training.sgd), Error);
  CHECK_THROWS_AS(training.scaler.update(), Error);
  training.scaled_gradient();
  training.scaler.step(training.sgd);
  training.scaler.update();
  CHECK(training.param.to_vector() == std::vector{0.5, 1.5});
}

TEST_CASE("a copy of a scaler has steps of its own") {
  Training training(false);
  training.scaled_gradient();
  training.scaler.unscale_(training.sgd);
  GradScaler copy = training.scaler;
  copy.step(training.sgd);
  copy.update();
  CHECK_THROWS_AS(copy.update(), Error);
  training.scaler.update();
}
