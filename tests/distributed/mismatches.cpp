// Ranks that do not do the same: one error on each of them, and nothing stored.
#include <doctest/doctest.h>

#include <array>
#include <functional>

#include "distributed/run_testing.h"
#include "fusebook/amp/grad_scaler.h"
#include "fusebook/optim/all.h"
#include "support/tested_device.h"
#include "support/testing.h"

using namespace run_testing;
using testing::contains;
using testing::message_of;

namespace {

bool is_last() { return given_ranks->rank() == given_ranks->size() - 1; }

// The message of an action that must fail on all ranks alike.
template <class Action>
std::string agreed_message(Action action) {
  std::string message;
  try {
    action();
  } catch (const RanksDisagree& error) {
    message = error.what();
  }
  CHECK(message != "");
  for (const std::string& each :
       given_ranks->gather(message, &RankTraffic::agreement)) {
    CHECK(each == message);
  }
  return message;
}

const Model small = {{{{4, 4}, DType::float32}, {{9}, DType::float32}}};

struct Training {
  explicit Training(const AdamWOptions& options = {})
      : params(small.params()),
        opt(params, options),
        sharded(*given_ranks, opt, {.backend = Backend::interpreted}) {}

  std::vector<Tensor> params;
  AdamW opt;
  ShardedOptimizer sharded;
};

std::string name_of_last() {
  return "rank " + std::to_string(given_ranks->size() - 1);
}

}  // namespace

TEST_CASE("other options when it is made") {
  if (given_ranks->size() == 1) return;
  const std::string message = agreed_message([&] {
    const Training training(AdamWOptions{.lr = is_last() ? 0.5 : 0.25});
  });
  CHECK(contains(message, name_of_last()));
  CHECK(contains(message, "param_groups[0][\"lr\"] = 0.5"));
  CHECK(contains(message, "param_groups[0][\"lr\"] = 0.25"));
  CHECK(contains(message, "run_testing.h") == false);
  CHECK(contains(message, "mismatches.cpp:"));
}

TEST_CASE("other sizes, dtypes, classes") {
  if (given_ranks->size() == 1) return;
  const std::string shape = agreed_message([&] {
    SGD opt({zeros({is_last() ? 3 : 4})});
    const ShardedOptimizer sharded(*given_ranks, opt);
  });
  CHECK(contains(shape, "parameter 0 in group 0 with shape [3]"));
  CHECK(contains(shape, "parameter 0 in group 0 with shape [4]"));
  const std::string count = agreed_message([&] {
    std::vector<Tensor> params = {zeros({4})};
    if (is_last()) params.push_back(zeros({2}));
    SGD opt(params);
    const ShardedOptimizer sharded(*given_ranks, opt);
  });
  CHECK(contains(count, "has parameters: 1"));
  CHECK(contains(count, "has parameters: 2"));
  const std::string dtype = agreed_message([&] {
    SGD opt({zeros({4}, is_last() ? DType::float64 : DType::float32)});
    const ShardedOptimizer sharded(*given_ranks, opt);
  });
  CHECK(contains(dtype, "float64"));
  const std::string kind = agreed_message([&] {
    std::unique_ptr<Optimizer> opt;
    if (is_last()) {
      opt = std::make_unique<Adam>(std::vector{zeros({4})});
    } else {
      opt = std::make_unique<AdamW>(std::vector{zeros({4})});
    }
    const ShardedOptimizer sharded(*given_ranks, *opt);
  });
  CHECK(contains(kind, "Adam"));
}

TEST_CASE("another seed of stochastic rounding") {
  if (given_ranks->size() == 1) return;
  Training training;
  training.opt.use_stochastic_rounding(true, is_last() ? 7 : 6);
  add_own_gradients(training.sharded, small, training.params, 0);
  CHECK(contains(agreed_message([&] { training.sharded.step(); }),
                 "param_groups[0][\"rounding_seed\"] = 7"));
}

TEST_CASE("an update in float32 on one rank alone") {
  if (given_ranks->size() == 1) return;
  Training training;
  training.opt.use_opmath(is_last());
  add_own_gradients(training.sharded, small, training.params, 0);
  CHECK(contains(agreed_message([&] { training.sharded.step(); }),
                 "param_groups[0][\"opmath\"] = true"));
}

TEST_CASE("other sizes of states in 8 bits, and another device") {
  if (given_ranks->size() == 1) return;
  Training training;
  training.opt.use_8bit_states(true, is_last() ? 5000 : 4096);
  add_own_gradients(training.sharded, small, training.params, 0);
  CHECK(contains(agreed_message([&] { training.sharded.step(); }),
                 "param_groups[0][\"min_8bit_size\"] = 5000"));
  Training other;
  other.opt.use_8bit_states(true, 4096, is_last() ? 128 : 256);
  add_own_gradients(other.sharded, small, other.params, 0);
  CHECK(contains(agreed_message([&] { other.sharded.step(); }),
                 "param_groups[0][\"state_block_size\"] = 128"));
  const std::string device = agreed_message([&] {
    const testing::DefaultDevice scope(is_last() ? testing::tested_device()
                                                 : cpu_device);
    SGD opt({zeros({4})});
    const ShardedOptimizer sharded(*given_ranks, opt);
  });
  CHECK(contains(device, "and float32 on cpu"));
}

namespace {

// An optimizer of the user's, whose code differs on one rank.
class Odd final : public SGD {
 public:
  using SGD::SGD;

 protected:
  void update(const SGDOptions& options, const Batch& batch) const override {
    if (is_last()) foreach_clamp_(batch.grads, -1.0, 1.0);
    SGD::update(options, batch);
  }
};

}  // namespace

TEST_CASE("other operations") {
  if (given_ranks->size() == 1) return;
  const std::string message = agreed_message([&] {
    Odd opt({zeros({4})});
    const ShardedOptimizer sharded(*given_ranks, opt);
  });
  CHECK(contains(message, name_of_last() + " has a step recorded as "));
}

namespace {

// An optimizer of the user's, whose update depends on more than its options.
struct Outside {
  std::function<void(const TensorList& grads)> before = [](const auto&) {};
  double factor = 1.0;
};
Outside outside;

class Free final : public Adam {
 public:
  using Adam::Adam;

 protected:
  void update(const AdamOptions& options, const Batch& batch) const override {
    outside.before(batch.grads);
    foreach_mul_(batch.grads, outside.factor);
    Adam::update(options, batch);
  }
};

struct FreeTraining : SharedTraining<Free> {
  FreeTraining() : SharedTraining(small) { outside = {}; }
  ~FreeTraining() { outside = {}; }
  // Of parameters and all states here.
  std::vector<Tensor> all() const {
    std::vector<Tensor> copies;
    for (const Tensor& each : params) copies.push_back(each.clone());
    for (const Tensor& each : sharded.own()) {
      for (const auto& [name, state] : opt.states(each)) {
        copies.push_back(state.clone());
      }
    }
    return copies;
  }
};

void clamp(const TensorList& grads) { foreach_clamp_(grads, -1.0, 1.0); }

}  // namespace

TEST_CASE("a rank alone takes another branch in the third step") {
  FreeTraining usual;
  for (int k = 0; k < 4; ++k) usual.step(k, {.divide_by = 7});
  FreeTraining training;
  for (int k = 0; k < 2; ++k) training.step(k, {.divide_by = 7});
  const auto before = training.all();
  if (given_ranks->size() > 1) {
    const auto check = [&](const std::string& told) {
      const std::string message =
          agreed_message([&] { training.sharded.step({.divide_by = 7}); });
      CHECK(contains(message, name_of_last() + told));
      CHECK(contains(message, "in step at "));
      CHECK(contains(message, "mismatches.cpp:"));
      CHECK(bitwise_equal(before, training.all()));
      CHECK(training.opt.steps() == 2);
    };
    add_own_gradients(training.sharded, small, training.params, 2);
    if (is_last()) outside.before = clamp;
    check(" has a step recorded as ");
    outside = {};
    if (is_last()) outside.factor = 0.5;  // the same operations
    check(" has a step recorded as ");
    outside = {};
    if (is_last()) {
      outside.before = [](const auto&) { throw Error("out of luck"); };
    }
    check(" failed in step at ");
    outside = {};
    // Once they agree, they go on.
    training.sharded.step({.divide_by = 7});
    training.step(3, {.divide_by = 7});
  } else {
    for (int k = 2; k < 4; ++k) training.step(k, {.divide_by = 7});
  }
  CHECK(bitwise_equal(usual.all(), training.all()));
}

TEST_CASE("recordings that are compared leave no trace") {
  int before = 0;
  int after = 0;
  int updates = 0;
  FreeTraining training;
  outside.before = [&](const auto&) { ++updates; };
  const std::array handles = {
      training.opt.register_step_pre_hook([&](Optimizer&) { ++before; }),
      training.opt.register_step_post_hook([&](Optimizer&) { ++after; })};
  for (int k = 0; k < 5; ++k) training.step(k, {.divide_by = 7});
  CHECK(before == 5);
  CHECK(after == 5);
  CHECK(updates >= 5);
  CHECK(training.opt.steps() == 5);
  CHECK(training.opt.parameters().size() == training.sharded.own().size());
  for (const Tensor& each : training.sharded.own()) {
    CHECK(training.opt.state(each, "step").item() == 5);
  }
  std::size_t bytes = 0;
  for (const Tensor& each : training.sharded.own()) {
    for (const auto& [name, state] : training.opt.states(each)) {
      bytes += state.nbytes();
    }
  }
  CHECK(training.opt.memory().states == bytes);
  // Nothing is compiled again.
  const Counters first = training.sharded.counters();
  for (int k = 5; k < 8; ++k) training.step(k, {.divide_by = 7});
  CHECK(training.sharded.counters().compilations == first.compilations);
}

TEST_CASE("an update that reads a value is recorded up to there") {
  FreeTraining training;
  outside.before = [](const TensorList& grads) {
    if (!grads.empty()) static_cast<void>(foreach_norm(grads)[0].item());
  };
  if (given_ranks->size() == 1) return;
  training.step(0);
  const auto before = training.all();
  add_own_gradients(training.sharded, small, training.params, 1);
  if (is_last()) outside.factor = 0.5;  // behind it
  const auto reads = outside.before;
  if (is_last()) {
    outside.before = [&](const TensorList& grads) {
      clamp(grads);
      reads(grads);
    };
  }
  CHECK(contains(agreed_message([&] { training.sharded.step(); }),
                 name_of_last() + " has a step recorded as "));
  CHECK(bitwise_equal(before, training.all()));
}

TEST_CASE("a rate that moved on one rank alone") {
  if (given_ranks->size() == 1) return;
  Training training;
  const auto before = training.params[0].clone();
  if (is_last()) training.opt.group(0)["lr"].assign(0.5);
  add_own_gradients(training.sharded, small, training.params, 0);
  const std::string message =
      agreed_message([&] { training.sharded.step({.max_norm = 1.0}); });
  CHECK(contains(message, "param_groups[0][\"lr\"] = 0.5"));
  CHECK(contains(message, "in step at "));
  CHECK(bitwise_equal(before, training.params[0]));
  CHECK(training.opt.steps() == 0);
  // Once they agree, they go on.
  training.opt.group(0)["lr"].assign(0.25);
  training.sharded.step();
  CHECK_FALSE(bitwise_equal(before, training.params[0]));
}

TEST_CASE("another clipping, another call, another dtype of a gradient") {
  if (given_ranks->size() == 1) return;
  Training training;
  add_own_gradients(training.sharded, small, training.params, 0);
  const std::string clipping = agreed_message(
      [&] { training.sharded.step({.max_norm = is_last() ? 2.0 : 1.0}); });
  CHECK(contains(clipping, "max_norm = 2"));
  const std::string call = agreed_message([&] {
    if (is_last()) {
      given_ranks->agree({"save", std::source_location::current(), {}});
    } else {
      training.sharded.step();
    }
  });
  CHECK(contains(call, name_of_last() + " is in save at "));
  const std::string dtype = agreed_message([&] {
    training.params[0].set_grad(
        zeros({4, 4}, is_last() ? DType::bfloat16 : DType::float32));
    training.sharded.add_gradients();
  });
  CHECK(contains(dtype, "gradient of parameter 0 in bfloat16"));
}

TEST_CASE("gradients out of order, or none at all") {
  if (given_ranks->size() > 1) {
    Training training;
    const std::string order = agreed_message([&] {
      if (given_ranks->rank() == 0) {
        training.sharded.step();
      } else {
        training.sharded.add_gradients();
      }
    });
    CHECK(contains(order, "rank 0 is in step at "));
    CHECK(contains(order, "rank 1 still is in add_gradients at "));
  }
  Training training;
  const std::string none = agreed_message([&] { training.sharded.step(); });
  CHECK(contains(none, "no rank has added gradients"));
}

TEST_CASE("a rank fails while the others step") {
  Training training;
  const auto handle = training.opt.register_step_pre_hook([](Optimizer&) {
    if (is_last()) throw Error("out of paper");
  });
  add_own_gradients(training.sharded, small, training.params, 0);
  const std::string message = agreed_message([&] { training.sharded.step(); });
  CHECK(contains(message, name_of_last() + " failed in step at "));
  CHECK(contains(message, "out of paper"));
  CHECK(contains(message_of<Error>([&] { training.sharded.step(); }),
                 "an earlier step failed on some rank"));
}

TEST_CASE("the optimizer of shares is not stepped by itself") {
  Training training;
  add_own_gradients(training.sharded, small, training.params, 0);
  training.sharded.step();
  std::vector<Tensor> before;
  for (const Tensor& each : training.params) before.push_back(each.clone());
  const std::string message = message_of<Error>([&] { training.opt.step(); });
  CHECK(contains(message, "AdamW is shared by ranks since "));
  CHECK(contains(message, "mismatches.cpp:"));
  CHECK(bitwise_equal(before, training.params));
  CHECK(contains(agreed_message([&] {
                   const ShardedOptimizer again(*given_ranks, training.opt);
                 }),
                 "AdamW is shared by ranks since "));
  // It can go on.
  add_own_gradients(training.sharded, small, training.params, 1);
  training.sharded.step();
  CHECK(training.opt.steps() == 2);
}

TEST_CASE(
    "zero_grad of the optimizer removes the gradients of whole parameters") {
  Training training;
  for (const bool to_none : {true, false}) {
    for (Tensor& each : training.params) {
      each.set_grad(full(each.shape(), 3.0, each.dtype()));
    }
    training.opt.zero_grad(to_none);
    for (const Tensor& each : training.params) {
      CHECK(each.grad().defined() == !to_none);
      if (!to_none) CHECK(each.grad().to_vector()[0] == 0);
    }
  }
}

TEST_CASE("a scaler does not look at shares") {
  Training training;
  GradScaler scaler;
  CHECK(contains(message_of<Error>([&] { scaler.unscale_(training.opt); }),
                 "it is shared by ranks; give the scaler to the step of the "
                 "ShardedOptimizer"));
}

TEST_CASE("parameters that share memory are refused on any number of ranks") {
  const Tensor memory = zeros({20000});
  std::vector<Tensor> params = {memory.narrow(0, 0, 12000),
                                memory.narrow(0, 8000, 12000)};
  SGD opt(params);
  CHECK(contains(agreed_message([&] {
                   const ShardedOptimizer sharded(*given_ranks, opt);
                 }),
                 "parameters 0 and 1 share memory"));
}

TEST_CASE("afterwards it is an optimizer as any other") {
  auto params = small.params();
  SGD opt(params);
  {
    const ShardedOptimizer sharded(*given_ranks, opt);
  }
  opt.step();
  CHECK(opt.steps() == 1);
}

TEST_CASE("parameters that are added later are not shared") {
  Training training;
  training.opt.add_param_group({zeros({3})});
  const std::string told = "the parameters of AdamW are no longer those that";
  CHECK(contains(message_of<Error>([&] { training.sharded.add_gradients(); }),
                 told));
  CHECK(contains(message_of<Error>([&] { training.sharded.step(); }), told));
}

TEST_CASE("inside of a compiled function") {
  Training training;
  auto step = compile([&] { training.sharded.step(); });
  CHECK(contains(message_of<Error>([&] { step(); }),
                 "cannot be part of a compiled function"));
}
