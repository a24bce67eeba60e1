// Gradients and states in other dtypes than their parameters.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/loss.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/step_testing.h"
#include "support/testing.h"

using namespace fuse;
using namespace step_testing;
using checkpoint_testing::bits_of;
using checkpoint_testing::Kind;
using testing::message_of;
using testing::Random;

namespace {

constexpr DType dtypes[] = {DType::float32, DType::bfloat16, DType::float16,
                            DType::float64};

// Parameters of `params` with gradients of `grads`, of numbers that both hold.
void give_gradients(const std::vector<Tensor>& params, DType grads,
                    std::uint64_t seed) {
  Random random(seed);
  for (Tensor param : params) {
    param.set_grad(random_tensor(param.shape(), random, 0.25, grads));
  }
}

// The same gradients, each rounded to the dtype of its parameter.
void take_gradients(const std::vector<Tensor>& params,
                    const std::vector<Tensor>& from) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(params[i]).set_grad(from[i].grad().to(params[i].dtype()));
  }
}

std::vector<Tensor> params_of(DType dtype) {
  return make_params({{7}, {}, {3, 5}, {1}, {0}, {64}}, 1, dtype);
}

// p -= lr * b with b = 0.9 * b + g, where b is in float32 whatever p is.
struct MomentumOptions {
  Scalar lr = 0.1;
  bool foreach = true;
  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
  }
  template <class F>
  void for_each_flag(F /*f*/) {}
  void validate() const {}
};

class Momentum : public ListOptimizer<MomentumOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const MomentumOptions& /*o*/) const override {
    static constexpr StateSpec specs[] = {
        {.name = "buffer", .initial = 1, .dtype = DType::float32}};
    return specs;
  }
  void update(const MomentumOptions& o, const Batch& batch) const override {
    foreach_add_(batch.steps, 1.0);
    foreach_mul_(batch.states[0], 0.9);
    foreach_add_(batch.states[0], batch.grads);
    foreach_sub_scaled_(batch.params, batch.states[0], o.lr);
  }
};

}  // namespace

TEST_CASE("every optimizer takes gradients of another dtype") {
  for (const Kind& kind : checkpoint_testing::kinds()) {
    for (const DType grads : dtypes) {
      CAPTURE(kind.name);
      CAPTURE(name_of(grads));
      const auto given = kind.make(false);
      const auto rounded = kind.make(false);
      auto step = compile([&] { given->step(); },
                          {.fullgraph = true, .backend = Backend::interpreted});
      for (int i = 0; i < 3; ++i) {
        give_gradients(given->parameters(), grads, std::uint64_t(i));
        take_gradients(rounded->parameters(), given->parameters());
        step();
        rounded->step();
        REQUIRE(bits_of(*given, {}) == bits_of(*rounded, {}));
      }
      CHECK(step.counters().launches == 3);
      CHECK(step.counters().compilations == 1);
    }
  }
}

TEST_CASE(
    "gradients of another dtype: all dtypes, all ways to run, one launch") {
  for (const DType dtype : dtypes) {
    for (const DType grads : dtypes) {
      CAPTURE(name_of(dtype));
      CAPTURE(name_of(grads));
      const AdamOptions options = {.lr = 0.1, .weight_decay = 0.1};
      const auto expected_params = params_of(dtype);
      Adam expected(expected_params, options);
      const auto eager_params = copies(expected_params);
      Adam eager(eager_params, options);
      const auto given_params = copies(expected_params);
      Adam given(given_params, options);
      std::vector<std::vector<Tensor>> compiled_params;
      std::vector<Adam> adams;
      for (int i = 0; i < 3; ++i) {
        compiled_params.push_back(copies(expected_params));
        adams.emplace_back(compiled_params.back(), options);
      }
      const auto step_of = [](Backend backend) {
        return compile([](Adam& adam) { adam.step(); },
                       {.fullgraph = true, .backend = backend});
      };
      auto compiled = step_of(Backend::compiled);
      auto interpreted = step_of(Backend::interpreted);
      auto simulated = step_of(Backend::simulated);
      for (int i = 0; i < 3; ++i) {
        give_gradients(eager_params, grads, std::uint64_t(i) + 50);
        take_gradients(expected_params, eager_params);
        std::vector<const void*> addresses;
        for (std::size_t k = 0; k < eager_params.size(); ++k) {
          const Tensor grad = eager_params[k].grad();
          addresses.push_back(grad.numel() == 0 ? nullptr : grad.raw_data());
          for (const auto& params : compiled_params) {
            Tensor(params[k]).set_grad(grad);
          }
        }
        expected.step();
        eager.step();
        given.step({.grads = addresses, .dtype = grads});
        compiled(adams[0]);
        interpreted(adams[1]);
        simulated(adams[2]);
        REQUIRE(same_bits(eager_params, expected_params));
        REQUIRE(same_bits(given_params, expected_params));
        for (const auto& params : compiled_params) {
          REQUIRE(same_bits(params, expected_params));
        }
      }
      for (const auto* step : {&compiled, &interpreted, &simulated}) {
        CHECK(step->counters().launches == 3);
        CHECK(step->counters().compilations == 1);
      }
    }
  }
}

TEST_CASE("gradients of several dtypes in one group") {
  const auto expected_params = params_of(DType::float32);
  const auto params = copies(expected_params);
  Adam expected(expected_params);
  Adam adam(params);
  auto step = compile([&] { adam.step(); }, {.fullgraph = true});
  for (int i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < params.size(); ++k) {
      const DType dtype = dtypes[(k + (i == 3 ? 1 : 0)) % 4];
      give_gradients({params[k]}, dtype, k + 10 * std::uint64_t(i));
    }
    take_gradients(expected_params, params);
    expected.step();
    step();
    REQUIRE(same_bits(params, expected_params));
  }
  CHECK(step.counters().launches == 4);
}

TEST_CASE("two steps of one recording have gradients of their own") {
  const Tensor param = zeros({2});
  const Tensor first = full({2}, 1, DType::bfloat16);
  const Tensor second = full({2}, 10, DType::bfloat16);
  SGD sgd({param}, {.lr = 1});
  auto step = compile(
      [&] {
        for (const Tensor& grad : {first, second}) {
          Tensor(param).set_grad(grad);
          sgd.step();
        }
      },
      {.fullgraph = true});
  for (int i = 1; i <= 3; ++i) {
    step();
    CHECK(param.to_vector() == std::vector<double>(2, -11 * i));
  }
  CHECK(step.counters().launches == 3);
}

TEST_CASE("steps by address with another dtype each time") {
  const Tensor param = zeros({2});
  const Tensor narrow = full({2}, 1, DType::bfloat16);
  const Tensor wide = full({2}, 10, DType::float64);
  SGD sgd({param}, {.lr = 1});
  for (int i = 1; i <= 3; ++i) {
    for (const Tensor& grad : {narrow, wide}) {
      const std::vector<const void*> addresses = {grad.raw_data()};
      sgd.step({.grads = addresses, .dtype = grad.dtype()});
    }
    CHECK(param.to_vector() == std::vector<double>(2, -11 * i));
  }
}

TEST_CASE("what else is done to a gradient of another dtype") {
  const Tensor weight = full({3}, 1).requires_grad_();
  SGD sgd({weight}, {.lr = 1});
  Tensor(weight).set_grad(full({3}, 0.5, DType::bfloat16));
  // 0.5 + 0.25 + 2^-10 does not fit into eight bits.
  Tensor factor = full({3}, 0.25 + 0x1p-10);
  mse_loss(weight, weight.detach()).backward();
  CHECK(weight.grad().dtype() == DType::bfloat16);
  CHECK(weight.grad().to_vector() == std::vector<double>{0.5, 0.5, 0.5});
  sgd.zero_grad(false);
  CHECK(weight.grad().to_vector() == std::vector<double>{0, 0, 0});
  CHECK(weight.grad().dtype() == DType::bfloat16);
  CHECK(message_of<Error>([&] {
          Tensor(weight).set_grad(zeros({2}, DType::bfloat16));
        }) == "a gradient of shape [2] does not fit a tensor of shape [3]");
}

TEST_CASE("a state has the dtype that its StateSpec says") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    const Tensor weight = full({5}, 1, DType::bfloat16);
    const Tensor twin = weight.clone();
    Momentum momentum({weight});
    Momentum eager({twin});
    auto step = compile([&] { momentum.step(); },
                        {.fullgraph = true, .backend = backend});
    std::vector<float> buffer(5, 1);
    std::vector<double> value(5, 1);
    for (int n = 0; n < 6; ++n) {
      Random random{std::uint64_t(n)};
      const Tensor grad = random_tensor({5}, random, 0.25, DType::bfloat16);
      Tensor(weight).set_grad(grad);
      Tensor(twin).set_grad(grad);
      step();
      eager.step();
      for (std::size_t i = 0; i < 5; ++i) {
        buffer[i] = buffer[i] * 0.9F + float(grad.to_vector()[i]);
        const float next = float(value[i]) - buffer[i] * 0.1F;
        value[i] = double(float(BFloat16(next)));
      }
      const Tensor kept = momentum.state(weight, "buffer");
      CHECK(kept.dtype() == DType::float32);
      CHECK(kept.to_vector() ==
            std::vector<double>(buffer.begin(), buffer.end()));
      CHECK(weight.to_vector() == value);
      CHECK(same_bits(weight, twin));
      CHECK(same_bits(kept, eager.state(twin, "buffer")));
    }
    CHECK(step.counters().launches == 6);
    CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("a state of its own dtype is saved, checked and loaded as that") {
  const jit_testing::TempDir dir;
  const std::string file = dir.path() + "/state";
  const auto params = make_params({{5}, {2, 3}}, 1, DType::bfloat16);
  Momentum saved(params);
  saved.step();
  save_checkpoint(file, saved);
  Momentum later(make_params({{5}, {2, 3}}, 2, DType::bfloat16));
  load_checkpoint(file, later);
  CHECK(bits_of(later, {}) == bits_of(saved, {}));
  CHECK(later.state(later.parameters()[1], "buffer").dtype() == DType::float32);
  Momentum from_dict(make_params({{5}, {2, 3}}, 3, DType::bfloat16));
  from_dict.load_state_dict(saved.state_dict());
  CHECK(from_dict.state(from_dict.parameters()[0], "buffer").dtype() ==
        DType::float32);
  CHECK(same_bits(from_dict.state(from_dict.parameters()[0], "buffer"),
                  saved.state(params[0], "buffer")));
  StateDict wrong = saved.state_dict();
  wrong.state.at(1).at("buffer") = zeros({2, 3}, DType::bfloat16);
  CHECK(message_of<Error>([&] { saved.load_state_dict(wrong); }) ==
        "cannot load the state dict: state[1].buffer has shape [2, 3] and "
        "bfloat16, but must have shape [2, 3] and float32");
}
