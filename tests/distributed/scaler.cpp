// Losses that are scaled, and averages of parameters: the rest of a training step,
// with a step that is shared.
#include <doctest/doctest.h>

#include "distributed/run_testing.h"
#include "fusebook/amp/grad_scaler.h"
#include "fusebook/optim/all.h"
#include "fusebook/swa_utils/averaged_model.h"
#include "support/testing.h"

using namespace run_testing;
using testing::contains;
using testing::message_of;

namespace {

constexpr int steps = 12;
constexpr GradScalerOptions growing = {
    .init_scale = 3000, .growth_factor = 1.5, .growth_interval = 3};

// Every fourth step has a gradient that is infinite.
Model scaled_model(DType dtype) {
  Model model = {{{{3}, dtype}, {{100, 257}, dtype}, {{8193, 2}, dtype}}};
  model.is_broken = [](int step, int micro) {
    return step % 4 == 2 && micro == 3;
  };
  return model;
}

struct Outcome {
  std::vector<Tensor> params;
  std::vector<double> scales;
  bool operator==(const Outcome& other) const {
    return scales == other.scales && bitwise_equal(params, other.params);
  }
};

// As any program of one process does it.
Outcome alone(const Model& model, GradScaler& scaler) {
  Outcome found = {model.params(), {}};
  Adam opt(found.params, {.lr = 0.01});
  for (int step = 0; step < steps; ++step) {
    opt.zero_grad();
    for (int m = 0; m < micro_gradients; ++m) {
      model.add_gradients(found.params, step, m);
    }
    scaler.unscale_(opt);
    for (const TensorList& list : lists_of(found.params)) {
      foreach_div_(list, double(micro_gradients));
    }
    clip_grad_norm_(found.params, 1e-4);
    scaler.step(opt);
    scaler.update();
    found.scales.push_back(scaler.get_scale());
  }
  return found;
}

Outcome shared(const Model& model, GradScaler& scaler) {
  Outcome found = {model.params(), {}};
  Adam opt(found.params, {.lr = 0.01});
  ShardedOptimizer sharded(*given_ranks, opt);
  for (int step = 0; step < steps; ++step) {
    add_own_gradients(sharded, model, found.params, step);
    const ShardedResult result =
        sharded.step({.scaler = &scaler,
                      .divide_by = double(micro_gradients),
                      .max_norm = 1e-4});
    CHECK(result.skipped == (step % 4 == 2 && scaler.is_enabled()));
    scaler.update();
    found.scales.push_back(scaler.get_scale());
  }
  return found;
}

}  // namespace

TEST_CASE("a GradScaler moves and skips as in one process") {
  for (const DType dtype : {DType::float32, DType::float16}) {
    CAPTURE(name_of(dtype));
    GradScaler one(growing);
    GradScaler many(growing);
    const Model model = scaled_model(dtype);
    const Outcome found = alone(model, one);
    CHECK(shared(model, many) == found);
    CHECK(many.state_dict() == one.state_dict());
    // It has fallen three times, and grown where three steps in a row were good.
    CHECK(found.scales == std::vector<double>{3000, 3000, 1500, 1500, 1500,
                                              2250, 1125, 1125, 1125, 1687.5,
                                              843.75, 843.75});
  }
}

TEST_CASE("one that is not enabled does nothing") {
  Model model = scaled_model(DType::float32);
  model.is_broken = [](int, int) { return false; };
  GradScaler one({.enabled = false});
  GradScaler many({.enabled = false});
  CHECK(shared(model, many) == alone(model, one));
}

TEST_CASE("gradients are looked at before the scale is taken out") {
  // The scale is so small that finite gradients overflow without it.
  Model model = {{{{40}, DType::float16}}};
  auto params = model.params();
  SGD opt(params, {.lr = 1.0});
  ShardedOptimizer sharded(*given_ranks, opt);
  GradScaler scaler({.init_scale = 1e-6});
  params[0].set_grad(full({40}, 1.0, DType::float16));
  sharded.add_gradients();
  CHECK(!sharded.step({.scaler = &scaler}).skipped);
  CHECK(params[0].to_vector()[7] == -INFINITY);
}

TEST_CASE("a scaler that was used already") {
  const Model model = scaled_model(DType::float32);
  auto params = model.params();
  Adam opt(params);
  ShardedOptimizer sharded(*given_ranks, opt);
  GradScaler scaler;
  const auto step = [&] {
    add_own_gradients(sharded, model, params, 0);
    sharded.step({.scaler = &scaler});
  };
  step();
  const auto before = params[1].to_vector();
  const std::string message = message_of<Error>(step);
  CHECK(contains(message, "a step was already made since the last update()"));
  CHECK(params[1].to_vector() == before);
  scaler.update();
  sharded.step({.scaler = &scaler});  // with the gradients that were sent
  CHECK(params[1].to_vector() != before);
}

TEST_CASE("scalers that differ") {
  if (given_ranks->size() == 1) return;
  const Model model = scaled_model(DType::float32);
  auto params = model.params();
  Adam opt(params);
  ShardedOptimizer sharded(*given_ranks, opt);
  GradScaler scaler({.init_scale = given_ranks->rank() == 1 ? 512.0 : 1024.0});
  add_own_gradients(sharded, model, params, 0);
  const std::string message =
      message_of<RanksDisagree>([&] { sharded.step({.scaler = &scaler}); });
  CHECK(contains(message, "scale 512"));
  CHECK(contains(message, "scale 1024"));
}

TEST_CASE("averages of all parameters, and of this rank's share") {
  const Model model = scaled_model(DType::float32);
  auto params = model.params();
  Adam opt(params);
  ShardedOptimizer sharded(*given_ranks, opt);
  std::vector<Tensor> whole;
  std::vector<Tensor> own;
  for (const Tensor& each : params) whole.push_back(each.clone());
  for (const Tensor& each : sharded.own()) own.push_back(each.clone());
  ParameterAverages of_all(whole, get_ema_multi_avg_fn(0.5));
  ParameterAverages of_own(own, get_ema_multi_avg_fn(0.5));
  for (int step = 0; step < 6; ++step) {
    add_own_gradients(sharded, model, params, step);
    const auto result = sharded.step({.skip_nonfinite = true});
    const AverageOptions held = {.skip = Scalar(result.skipped ? 1.0 : 0.0)};
    of_all.update(params, held);
    of_own.update(sharded.own(), held);
  }
  CHECK(of_all.n_averaged() == 5);
  std::size_t next = 0;
  for (const Share& each : sharded.shares()) {
    if (each.owner != given_ranks->rank()) continue;
    CHECK(bitwise_equal(own[next++], view_of(each, whole[each.param])));
  }
}
