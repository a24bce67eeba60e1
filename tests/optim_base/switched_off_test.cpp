// Options that are switched off in the middle of training: what they alone kept is
// left out of checkpoints, and states in float32 stay so.
#include <doctest/doctest.h>

#include <functional>
#include <vector>

#include "fusebook/optim/all.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

constexpr int switched_at = 3;

// Steps over two parameters, of which one is frozen until the option is off.
template <class Optimizer>
struct Run {
  template <class Options>
  Run(DType dtype, const Options& options)
      : params{full({5}, 1.0, dtype), full({3}, 2.0, dtype)},
        optimizer(params, options) {}

  void step(int n) {
    testing::Random random(std::uint64_t(n) + 1);
    for (Tensor param : params) {
      const Tensor grad =
          random_tensor(param.shape(), random, 0.25, param.dtype());
      const bool frozen = n < switched_at && param.numel() == 3;
      if (!frozen) param.set_grad(grad);
    }
    optimizer.step();
  }

  std::vector<Tensor> params;
  Optimizer optimizer;
};

// Goes on in another run from a state dict, taken with and without a step since the
// switch.
template <class Optimizer, class Options>
void check(DType dtype, const Options& options,
           const std::function<void(Optimizer&)>& on,
           const std::function<void(Optimizer&)>& off) {
  for (const int taken_at : {switched_at, switched_at + 2}) {
    CAPTURE(taken_at);
    Run<Optimizer> run(dtype, options);
    on(run.optimizer);
    int n = 0;
    for (; n < switched_at; ++n) run.step(n);
    off(run.optimizer);
    for (; n < taken_at; ++n) run.step(n);

    Run<Optimizer> resumed(dtype, options);
    off(resumed.optimizer);
    resumed.optimizer.load_state_dict(run.optimizer.state_dict());
    run.optimizer.load_state_dict(run.optimizer.state_dict());
    for (std::size_t i = 0; i < 2; ++i) {
      resumed.params[i].copy_(run.params[i]);
    }
    for (; n < switched_at + 4; ++n) {
      run.step(n);
      resumed.step(n);
      CHECK(same_bits(resumed.params, run.params));
    }
  }
}

const auto nothing = [](auto&) {};

}  // namespace

TEST_CASE("a run goes on behind an option that was switched off") {
  check<Adam>(DType::float32, AdamOptions{.amsgrad = true}, nothing,
              [](Adam& adam) { adam.param_groups[0].options.amsgrad = false; });
  check<SGD>(DType::float32, SGDOptions{.momentum = 0.9}, nothing,
             [](SGD& sgd) { sgd.param_groups[0]["momentum"] = 0.0; });
  check<RMSprop>(DType::float32, RMSpropOptions{.centered = true}, nothing,
                 [](RMSprop& rmsprop) {
                   rmsprop.param_groups[0].options.centered = false;
                 });
}

TEST_CASE("a run goes on behind masters and random rounding") {
  check<Adam>(
      DType::bfloat16, AdamOptions{},
      [](Adam& adam) { adam.use_master_weights(); },
      [](Adam& adam) { adam.use_master_weights(false); });
  check<Adam>(
      DType::bfloat16, AdamOptions{},
      [](Adam& adam) { adam.use_split_masters(); },
      [](Adam& adam) { adam.use_split_masters(false); });
  check<Adam>(
      DType::bfloat16, AdamOptions{},
      [](Adam& adam) { adam.use_stochastic_rounding(); },
      [](Adam& adam) { adam.use_stochastic_rounding(false); });
}

TEST_CASE(
    "moments stay in float32 when masters are off, also new ones beside them") {
  Run<Adam> run(DType::bfloat16, AdamOptions());
  run.optimizer.use_master_weights();
  for (int n = 0; n < switched_at; ++n) run.step(n);
  const auto moment = [&](int i) {
    return run.optimizer.state(run.params[std::size_t(i)], "exp_avg");
  };
  CHECK_FALSE(moment(1).defined());

  run.optimizer.use_master_weights(false);
  run.step(switched_at);
  CHECK(moment(0).dtype() == DType::float32);
  CHECK(moment(1).dtype() == DType::float32);
  run.optimizer.use_master_weights();
  run.step(switched_at + 1);
}
