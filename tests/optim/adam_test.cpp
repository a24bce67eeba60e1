#include "fusebook/optim/adam.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adamw.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

Tensor make(const std::vector<double>& values, const std::vector<double>& grad,
            DType dtype = DType::float64) {
  Tensor param = tensor(values, dtype);
  param.set_grad(tensor(grad, dtype));
  return param;
}

void set_grad(const Tensor& param, double value) { param.grad().fill_(value); }

doctest::Approx near(double value, double epsilon = 1e-13) {
  return doctest::Approx(value).epsilon(epsilon).scale(0);
}

template <class Function>
std::string error_of(Function function) {
  return testing::message_of<Error>(function);
}

}  // namespace

// The values in these tests were worked out by hand from the formulas in the
// documentation of torch.optim.Adam and torch.optim.AdamW.

TEST_CASE("the first step moves a parameter by lr * g / (|g| + eps)") {
  const std::vector<double> grads = {1, -1, 0.5, 3, -1e-3, 1e-8, -1e-8, 1e-12};
  const double eps = 1e-8;
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-13;
    Tensor param = make(std::vector<double>(grads.size(), 0), grads, dtype);
    Adam adam({param}, {.lr = 0.1});
    adam.step();
    const std::vector<double> moved = param.to_vector();
    for (std::size_t i = 0; i < grads.size(); ++i) {
      const double g = grads[i];
      CHECK(moved[i] == near(-0.1 * g / (std::abs(g) + eps), tolerance));
    }
  }
}

TEST_CASE("a gradient as small as eps moves half as far") {
  const Tensor param = make({1}, {1e-8});
  Adam adam({param}, {.lr = 0.1});
  adam.step();
  CHECK(param.item() == near(0.95));
}

TEST_CASE("two steps, worked out by hand") {
  const Tensor param = make({1}, {1});
  Adam adam({param}, {.lr = 0.01, .eps = 0});
  adam.step();
  CHECK(param.item() == near(0.99));
  CHECK(adam.state(param, "exp_avg").item() == near(0.1));
  CHECK(adam.state(param, "exp_avg_sq").item() == near(0.001));
  CHECK(adam.state(param, "step").item() == 1);

  // m = 0.9 * 0.1 - 0.1 = -0.01, corrected by 1 - 0.81 to -1 / 19;
  // v = 0.999 * 0.001 + 0.001 = 0.001999, corrected by 0.001999 to 1.
  set_grad(param, -1);
  adam.step();
  CHECK(adam.state(param, "exp_avg").item() == near(-0.01));
  CHECK(adam.state(param, "exp_avg_sq").item() == near(0.001999));
  CHECK(param.item() == near(0.99 + 0.01 / 19));
  CHECK(adam.steps() == 2);
}

TEST_CASE("under a constant gradient every step is one learning rate") {
  const Tensor param = make({0}, {-3});
  Adam adam({param}, {.lr = 0.125, .eps = 0});
  for (int i = 1; i <= 50; ++i) {
    adam.step();
    CHECK(param.item() == near(0.125 * i));
  }
}

TEST_CASE("amsgrad divides by the largest average so far") {
  const Tensor param = make({0}, {1});
  Adam adam({param}, {.lr = 1, .betas = {0.0, 0.5}, .eps = 0, .amsgrad = true});
  adam.step();  // v = 0.5
  CHECK(adam.state(param, "max_exp_avg_sq").item() == near(0.5));
  // v = 0.25 + 0.5 / 16 = 0.28125 is smaller, so 0.5 stays:
  // the step is 0.25 / sqrt(0.5 / 0.75).
  set_grad(param, 0.25);
  adam.step();
  CHECK(adam.state(param, "exp_avg_sq").item() == near(0.28125));
  CHECK(adam.state(param, "max_exp_avg_sq").item() == near(0.5));
  CHECK(param.item() == near(-1 - 0.25 * std::sqrt(1.5)));
  // v = 0.140625 + 2 = 2.140625 is the largest.
  set_grad(param, 2);
  adam.step();
  CHECK(adam.state(param, "max_exp_avg_sq").item() == near(2.140625));
}

TEST_CASE("Adam adds the decay to the gradient, AdamW shrinks the parameter") {
  const Tensor coupled = make({2}, {0});
  Adam adam({coupled}, {.lr = 0.01, .eps = 0, .weight_decay = 0.5});
  adam.step();
  // The gradient is 0.5 * 2, and a first step is one learning rate long.
  CHECK(coupled.item() == near(1.99));
  CHECK(adam.state(coupled, "exp_avg").item() == near(0.1));

  const Tensor decoupled = make({2}, {0});
  AdamW adamw({decoupled}, {.lr = 0.01, .weight_decay = 0.5});
  adamw.step();
  CHECK(decoupled.item() == near(2 * (1 - 0.005)));
  CHECK(adamw.state(decoupled, "exp_avg").item() == 0);

  // With a gradient: first the decay, then the step.
  const Tensor both = make({2}, {-1});
  AdamW with_gradient({both}, {.lr = 0.01, .eps = 0, .weight_decay = 0.5});
  with_gradient.step();
  CHECK(both.item() == near(2 * 0.995 + 0.01));
}

TEST_CASE("the defaults are those of torch") {
  const AdamOptions adam;
  CHECK(adam.lr.value() == 1e-3);
  CHECK(adam.betas[0].value() == 0.9);
  CHECK(adam.betas[1].value() == 0.999);
  CHECK(adam.eps.value() == 1e-8);
  CHECK(adam.weight_decay.value() == 0);
  CHECK_FALSE(adam.amsgrad);
  CHECK_FALSE(adam.maximize);
  CHECK_FALSE(adam.decoupled_weight_decay);
  const AdamWOptions adamw;
  CHECK(adamw.lr.value() == 1e-3);
  CHECK(adamw.betas[0].value() == 0.9);
  CHECK(adamw.betas[1].value() == 0.999);
  CHECK(adamw.eps.value() == 1e-8);
  CHECK(adamw.weight_decay.value() == 1e-2);
  CHECK_FALSE(adamw.amsgrad);
  CHECK_FALSE(adamw.maximize);

  // And so they are when nothing is said.
  const Tensor param = make({1}, {1});
  AdamW optimizer({param});
  optimizer.step();
  CHECK(param.item() == near(1 - 1e-5 - 1e-3 / (1 + 1e-8)));
}

TEST_CASE("maximizing is minimizing along the opposite gradient") {
  const auto up = make_params(mixed_shapes(8), 3);
  const auto down = copies(up);
  for (const Tensor& param : down) {
    Tensor grad = param.grad();
    for (std::int64_t i = 0; i < grad.numel(); ++i) grad.data<float>()[i] *= -1;
  }
  Adam climbing(up, {.lr = 0.1, .maximize = true});
  Adam falling(down, {.lr = 0.1});
  for (int i = 0; i < 3; ++i) {
    climbing.step();
    falling.step();
  }
  CHECK(same_bits(up, down));
  // Decay always shrinks: it is not turned with the gradient.
  const Tensor param = make({2}, {0});
  Adam decaying({param},
                {.lr = 0.01, .eps = 0, .weight_decay = 0.5, .maximize = true});
  decaying.step();
  CHECK(param.item() == near(1.99));
}

TEST_CASE("a learning rate of zero moves nothing, also where v is zero") {
  const std::vector<double> values = {1, -2, 0.5};
  for (const bool amsgrad : {false, true}) {
    const Tensor param = make(values, {1, 0, -1e-30}, DType::float32);
    AdamW adam({param}, {.lr = 0.0, .amsgrad = amsgrad});
    auto step = compile([&] { adam.step(); });
    step();
    step();
    CHECK(param.to_vector() == values);
    CHECK(adam.state(param, "exp_avg").to_vector()[0] == doctest::Approx(0.19));
  }
}

TEST_CASE("a step count goes on where float32 or bfloat16 would stick") {
  // Near 2^24 the correction still matters if beta2 is close enough to one.
  const double beta1 = 1 - 0x1p-20;
  const double beta2 = 1 - 0x1p-26;
  for (const double start :
       {254.0, 255.0, 256.0, 0x1p24 - 2, 0x1p24 - 1, 0x1p24, 0x1p24 + 1}) {
    CAPTURE(start);
    const Tensor param = make({0}, {0.5});
    const Tensor twin = make({0}, {0.5});
    Adam eager({twin}, {.lr = 0.125, .betas = {beta1, beta2}, .eps = 0});
    Adam adam({param}, {.lr = 0.125, .betas = {beta1, beta2}, .eps = 0});
    auto step =
        compile([&] { adam.step(); }, {.backend = Backend::interpreted});
    eager.step();
    step();
    for (const Tensor& one :
         {adam.state(param, "step"), eager.state(twin, "step")}) {
      Tensor count = one;
      CHECK(count.dtype() == DType::float64);
      count.fill_(start);
    }
    const double before = param.item();
    const double m =
        adam.state(param, "exp_avg").item() * beta1 + (1 - beta1) * 0.5;
    const double v =
        adam.state(param, "exp_avg_sq").item() * beta2 + (1 - beta2) * 0.25;
    eager.step();
    step();
    CHECK(adam.state(param, "step").item() == start + 1);
    const double correction1 = -std::expm1((start + 1) * std::log1p(-0x1p-20));
    const double correction2 = -std::expm1((start + 1) * std::log1p(-0x1p-26));
    CHECK(param.item() ==
          near(before - 0.125 * (m / correction1) / std::sqrt(v / correction2),
               1e-8));
    CHECK(same_bits(param, twin));
    step();
    CHECK(adam.state(param, "step").item() == start + 2);
  }
}

TEST_CASE("infinite beta powers: the corrections end at exactly one") {
  const Tensor param = make({0}, {1});
  Adam adam({param}, {.lr = 1, .eps = 0});
  adam.step();
  adam.state(param, "step").fill_(1e9);
  adam.step();
  CHECK(adam.state(param, "step").item() == 1e9 + 1);
  CHECK(param.item() == near(-1 - 0.19 / std::sqrt(0.001999)));
}

TEST_CASE("options that torch rejects are rejected, with the value") {
  const std::vector<Tensor> params = {make({1}, {1})};
  CHECK(error_of([&] { Adam(params, {.lr = -0.5}); }) ==
        "Adam: invalid learning rate: -0.5");
  CHECK(error_of([&] { Adam(params, {.lr = tensor(-0.5)}); }) ==
        "Adam: invalid learning rate: -0.5");
  CHECK(error_of([&] { Adam(params, {.lr = std::nan("")}); }) ==
        "Adam: invalid learning rate: nan");
  CHECK(error_of([&] { Adam(params, {.eps = -1e-9}); }) ==
        "Adam: invalid epsilon value: -1e-09");
  CHECK(error_of([&] { Adam(params, {.betas = {1.0, 0.9}}); }) ==
        "Adam: invalid beta parameter at index 0: 1");
  CHECK(error_of([&] { Adam(params, {.betas = {0.9, -0.1}}); }) ==
        "Adam: invalid beta parameter at index 1: -0.1");
  CHECK(error_of([&] { Adam(params, {.betas = {0.9, 1.5}}); }) ==
        "Adam: invalid beta parameter at index 1: 1.5");
  CHECK(error_of([&] { AdamW(params, {.weight_decay = -1}); }) ==
        "AdamW: invalid weight_decay value: -1");
  // What lies on the border is allowed.
  CHECK(error_of([&] {
          Adam(params, {.lr = 0, .betas = {0.0, 0.0}, .eps = 0});
        }) == "no error");
}

TEST_CASE("a float rate is a double, a tensor rate a float32") {
  const Tensor with_float = make({0}, {1});
  const Tensor with_tensor = make({0}, {1});
  Adam a({with_float}, {.lr = 0.1, .eps = 0});
  Adam b({with_tensor}, {.lr = tensor(0.1), .eps = 0});
  a.step();
  b.step();
  CHECK(with_float.item() == near(-0.1, 1e-15));
  CHECK(with_tensor.item() == near(-double(0.1F), 1e-15));
}

TEST_CASE("AdamW takes groups with options of their own") {
  const auto make = [] {
    Tensor param = full({3}, 2.0);
    param.set_grad(full({3}, 0.5));
    return param;
  };
  const Tensor first = make();
  const Tensor second = make();
  AdamW groups(std::vector<AdamW::Group>{
      {{first}}, {{second}, {.lr = 0.01, .weight_decay = 0.5}}});
  const Tensor alone = make();
  const Tensor other = make();
  AdamW defaults({alone});
  AdamW options({other}, {.lr = 0.01, .weight_decay = 0.5});
  for (int i = 0; i < 3; ++i) {
    groups.step();
    defaults.step();
    options.step();
  }
  CHECK(bitwise_equal(first, alone));
  CHECK(bitwise_equal(second, other));
  CHECK(groups.group(0)["weight_decay"].value() == 0.01);
  CHECK(groups.name() == "AdamW");
}
