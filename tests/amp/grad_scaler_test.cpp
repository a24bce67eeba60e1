#include "fusebook/amp/grad_scaler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// torch/amp/grad_scaler.py and _amp_update_scale_, in plain code.
struct ByHand {
  float scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t tracker = 0;

  float inverse() const { return float(1.0 / double(scale)); }
  void update(bool found_inf) {
    if (found_inf) {
      scale = float(double(scale) * backoff_factor);
      tracker = 0;
      return;
    }
    if (++tracker < growth_interval) return;
    const auto larger = float(double(scale) * growth_factor);
    if (std::isfinite(larger)) scale = larger;
    tracker = 0;
  }
};

const std::vector<Shape> shapes = {{300}, {}, {3, 4}, {9000}};

// What a backward pass from a scaled loss leaves.
void set_scaled_gradients(const std::vector<Tensor>& params, int step, bool bad,
                          float scale) {
  testing::Random random(std::uint64_t(step) + 100);
  for (const Tensor& param : params) {
    auto values = random_tensor(param.shape(), random, 0.25).to_vector();
    for (double& x : values) x = double(float(x) * scale);
    assign(param.grad(), values);
  }
  if (bad) params[std::size_t(step) % params.size()].grad().fill_(-infinity);
}

void unscale_by_hand(const std::vector<Tensor>& params, float inverse) {
  for (const Tensor& param : params) {
    auto values = param.grad().to_vector();
    for (double& x : values) x = double(float(x) * inverse);
    assign(param.grad(), values);
  }
}

// Trains with a scaler in one compile, or eagerly, beside torch's code.
void check_training(const GradScalerOptions& options,
                    const std::optional<Backend>& backend) {
  const auto params = make_params(shapes, 1);
  const auto expected = copies(params);
  Adam adam(params, {.lr = 0.01});
  Adam by_hand(expected, {.lr = 0.01});
  GradScaler scaler(options);
  ByHand wanted = {float(options.init_scale), options.growth_factor,
                   options.backoff_factor, options.growth_interval};
  const auto tail = [&] {
    scaler.unscale_(adam);
    clip_grad_norm_(params, 20.0);
    scaler.step(adam);
    scaler.update();
  };
  auto step = compile(tail, {.fullgraph = true,
                             .backend = backend.value_or(Backend::compiled)});
  testing::Random random(2);
  bool all = true;
  for (int n = 0; n < 200; ++n) {
    const bool bad = random.chance(0.2);
    set_scaled_gradients(params, n, bad, wanted.scale);
    set_scaled_gradients(expected, n, bad, wanted.scale);
    backend ? step() : tail();
    unscale_by_hand(expected, wanted.inverse());
    clip_grad_norm_(expected, 20.0);
    if (!bad) by_hand.step();
    wanted.update(bad);
    all = all && same_bits(params, expected) &&
          scaler.get_scale() == double(wanted.scale) &&
          scaler.state_dict().growth_tracker == wanted.tracker;
    for (std::size_t i = 0; i < params.size(); ++i) {
      all = all && same_bits(params[i].grad(), expected[i].grad());
    }
  }
  CHECK(all);
  CHECK(adam.steps() == 200);
  CHECK(adam.state(params[0], "step").item() == double(by_hand.steps()));
  if (backend) {
    CHECK(step.counters().launches == 200);
    CHECK(step.counters().graph_breaks == 0);
  }
}

}  // namespace

TEST_CASE("training with a scaler follows torch's code to the bit") {
  const GradScalerOptions powers = {.init_scale = 1024, .growth_interval = 5};
  const GradScalerOptions odd = {.init_scale = 1000,
                                 .growth_factor = 1.7,
                                 .backoff_factor = 0.3,
                                 .growth_interval = 3};
  for (const GradScalerOptions& options : {powers, odd}) {
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      check_training(options, backend);
    }
    check_training(options, std::nullopt);
  }
}

TEST_CASE("a scaler has torch's defaults") {
  const GradScaler scaler;
  CHECK(scaler.get_scale() == 65536);
  CHECK(scaler.get_growth_factor() == 2);
  CHECK(scaler.get_backoff_factor() == 0.5);
  CHECK(scaler.get_growth_interval() == 2000);
  CHECK(scaler.is_enabled());
  CHECK(scaler.state_dict() == GradScalerState{65536, 2, 0.5, 2000, 0});
}

TEST_CASE("the scale grows only if it stays finite") {
  // The first doubles to the largest power of two, the second to infinity; the
  // third rounds to infinity from just below, the fourth to the largest float.
  const std::vector<std::pair<double, double>> cases = {
      {0x1p126, 2},
      {0x1p127, 2},
      {0x1p127, 0x1.ffffffp0},
      {0x1p127, 0x1.fffffefp0}};
  const std::vector<double> scales = {0x1p127, 0x1p127, 0x1p127,
                                      0x1.fffffep127};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const bool compiled : {false, true}) {
      const auto params = make_params({{3}}, 1);
      SGD sgd(params);
      GradScaler scaler({.init_scale = cases[i].first,
                         .growth_factor = cases[i].second,
                         .growth_interval = 1});
      const auto tail = [&] {
        scaler.step(sgd);
        scaler.update();
      };
      auto step = compile(tail);
      compiled ? step() : tail();
      CHECK(scaler.get_scale() == scales[i]);
      CHECK(scaler.state_dict().growth_tracker == 0);
    }
  }
}

TEST_CASE("gradients of every list are looked at") {
  Tensor single = full({2}, 1);
  Tensor wide = full({2}, 1, DType::float64);
  single.set_grad(full({2}, 1));
  wide.set_grad(full({2}, infinity, DType::float64));
  SGD sgd({single, wide});
  GradScaler scaler({.init_scale = 4});
  auto step = compile([&] {
    scaler.step(sgd);
    scaler.update();
  });
  step();
  CHECK(single.to_vector() == std::vector<double>{1, 1});
  CHECK(scaler.get_scale() == 2);
  CHECK(step.counters().launches == 1);
}

TEST_CASE("each optimizer skips for itself, and the scale for all") {
  auto good = make_params({{3}}, 1);
  auto bad = make_params({{4}, {5}}, 2);
  bad[1].grad().fill_(NAN);
  const auto before = copies(good);
  const auto kept = copies(bad);
  SGD first(good);
  Adam second(bad);
  GradScaler scaler({.init_scale = 4});
  auto step = compile([&] {
    scaler.step(first);
    scaler.step(second);
    scaler.update();
  });
  step();
  CHECK(!same_bits(good, before));
  CHECK(same_bits(bad, kept));
  CHECK(scaler.get_scale() == 2);
  CHECK(step.counters().launches == 1);
}

TEST_CASE("whether something was infinite can be asked for") {
  auto params = make_params({{3}}, 1);
  SGD sgd(params);
  GradScaler scaler({.init_scale = 4});
  CHECK(!scaler.found_inf(sgd));
  for (const bool bad : {false, true}) {
    if (bad) params[0].grad().fill_(infinity);
    std::optional<Scalar> found;
    auto step = compile([&] {
      scaler.step(sgd);
      found = scaler.found_inf(sgd);
      scaler.update();
    });
    step();
    CHECK(found->value() == (bad ? 1 : 0));
  }
}

TEST_CASE("gradients in float16 are unscaled in place") {
  for (const bool compiled : {false, true}) {
    Tensor param = full({3}, 1, DType::float16);
    param.set_grad(tensor({8, -0.5, 65504}, DType::float16));
    SGD sgd({param}, {.lr = 0.5});
    GradScaler scaler({.init_scale = 8});
    const auto tail = [&] {
      scaler.step(sgd);
      scaler.update();
    };
    auto step = compile(tail);
    const auto run = [&] { compiled ? step() : tail(); };
    run();
    CHECK(param.grad().to_vector() == std::vector<double>{1, -0.0625, 8188});
    CHECK(param.to_vector()[0] == 0.5);
    param.grad().fill_(infinity);
    run();
    CHECK(param.to_vector()[0] == 0.5);
    CHECK(scaler.get_scale() == 4);
  }
}

TEST_CASE("the numbers are where the gradients are") {
  Tensor param = full({3}, 1).to(tested_device());
  param.set_grad(full({3}, 6).to(tested_device()));
  SGD sgd({param}, {.lr = 0.5});
  GradScaler scaler({.init_scale = 3, .growth_interval = 1});
  auto step = compile([&] {
    scaler.step(sgd);
    scaler.update();
  });
  step();
  CHECK(param.cpu().to_vector() == std::vector<double>{0, 0, 0});
  CHECK(scaler.get_scale() == 6);
  param.grad().fill_(infinity);
  step();
  CHECK(param.cpu().to_vector() == std::vector<double>{0, 0, 0});
  CHECK(scaler.get_scale() == 3);
  Tensor host = full({3}, 1);
  host.set_grad(full({3}, 6));
  SGD other({host});
  CHECK(contains(message_of<Error>([&] { scaler.step(other); }),
                 "use a scaler for each device"));
}

TEST_CASE("a loss need not be where the gradients are") {
  for (const bool compiled : {false, true}) {
    Tensor param = full({2}, 1).to(tested_device());
    param.requires_grad_();
    SGD sgd({param}, {.lr = 0.25});
    GradScaler scaler({.init_scale = 4, .growth_interval = 1});
    const Tensor target = zeros({2}).to(tested_device());
    const auto update = [&] {
      scaler.step(sgd);
      scaler.update();
    };
    auto step = compile(update);
    // The gradient is the parameter, so each step leaves three quarters of it.
    double expected = 1;
    double scale = 4;
    for (int n = 0; n < 3; ++n) {
      sgd.zero_grad();
      const Tensor loss = mse_loss(param, target);
      const Tensor scaled = scaler.scale(loss);
      CHECK(scaled.device() == loss.device());
      CHECK(scaled.item() == expected * expected * scale);
      scaled.backward();
      compiled ? step() : update();
      expected *= 0.75;
      scale *= 2;
      CHECK(param.cpu().to_vector() == std::vector(2, expected));
      CHECK(scaler.get_scale() == scale);
    }
  }
}

TEST_CASE("a scaled loss has scaled gradients") {
  Generator generator(1);
  const Sequential model({Linear(3, 2, generator)});
  GradScaler scaler({.init_scale = 8});
  const Tensor input = full({1, 3}, 0.5);
  model(input).sum().backward();
  const auto plain = model.parameters()[0].grad().to_vector();
  model.zero_grad();
  scaler.scale(model(input).sum()).backward();
  const auto scaled = model.parameters()[0].grad().to_vector();
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(scaled[i] == 8 * plain[i]);
  }
}

TEST_CASE("a scaler goes on from a state") {
  const auto params = make_params({{3}}, 1);
  SGD sgd(params);
  GradScaler scaler({.init_scale = 4, .growth_interval = 3});
  const auto train = [&](GradScaler& each) {
    each.step(sgd);
    each.update();
  };
  train(scaler);
  train(scaler);
  const GradScalerState state = scaler.state_dict();
  CHECK(state == GradScalerState{4, 2, 0.5, 3, 2});
  GradScaler fresh;
  fresh.load_state_dict(state);
  CHECK(fresh.state_dict() == state);
  train(fresh);
  CHECK(fresh.state_dict() == GradScalerState{8, 2, 0.5, 3, 0});
  fresh.load_state_dict(state);
  CHECK(fresh.state_dict() == state);
  GradScalerState wrong = state;
  wrong.backoff_factor = 1;
  CHECK(contains(message_of<Error>([&] { fresh.load_state_dict(wrong); }),
                 "backoff_factor must be less than 1"));
  CHECK(fresh.state_dict() == state);
}

TEST_CASE("a scale of your own") {
  const auto params = make_params({{3}}, 1);
  SGD sgd(params);
  GradScaler scaler;
  scaler.update(2.0);
  CHECK(scaler.get_scale() == 2);
  scaler.step(sgd);
  scaler.update(16.0);
  CHECK(scaler.get_scale() == 16);
  scaler.step(sgd);
}

TEST_CASE("a scaler that is not enabled does nothing") {
  const auto params = make_params({{3}}, 1);
  const auto expected = copies(params);
  SGD sgd(params);
  SGD plain(expected);
  GradScaler scaler({.enabled = false});
  const Tensor loss = tensor(2.0);
  CHECK(scaler.scale(loss).impl() == loss.impl());
  scaler.unscale_(sgd);
  scaler.step(sgd);
  scaler.update();
  plain.step();
  CHECK(same_bits(params, expected));
  CHECK(scaler.get_scale() == 1);
}

TEST_CASE("calls out of order are errors") {
  const auto params = make_params({{3}}, 1);
  SGD sgd(params);
  GradScaler scaler;
  CHECK(contains(message_of<Error>([&] { scaler.update(); }),
                 "call step() or unscale_() first"));
  scaler.unscale_(sgd);
  CHECK(contains(message_of<Error>([&] { scaler.unscale_(sgd); }),
                 "GradScaler::unscale_ for SGD at tests/amp"));
  scaler.step(sgd);
  CHECK(contains(message_of<Error>([&] { scaler.unscale_(sgd); }),
                 "it comes before step()"));
  CHECK(contains(message_of<Error>([&] { scaler.step(sgd); }),
                 "already called since the last update()"));
  scaler.update();
  scaler.step(sgd);
  SGD without({zeros({3})});
  CHECK(contains(message_of<Error>([&] { scaler.step(without); }),
                 "no parameter has a gradient"));
  CHECK(contains(message_of<Error>([] { GradScaler({.growth_factor = 1}); }),
                 "growth_factor must be greater than 1, not 1"));
  CHECK(contains(message_of<Error>([] { GradScaler({.backoff_factor = NAN}); }),
                 "backoff_factor must be less than 1"));
  CHECK(contains(message_of<Error>([] { GradScaler({.growth_interval = 0}); }),
                 "growth_interval must be at least 1, not 0"));
}
