// Parameters in 16 bits that are updated in float32, and rounded once.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/compile/compile.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/checkpoint_testing.h"
#include "support/lion.h"
#include "support/masters_testing.h"
#include "support/optimizer_rules.h"
#include "support/tested_device.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace masters_testing;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<Shape> shapes = {{300}, {}, {0}, {3, 4}, {9001}, {129}};

// ---- by hand ----------------------------------------------------------------

// To nearest, ties to even, by adding half of the last digit; no NaN, none that
// rounds beyond the largest.
float as_bfloat16(float x) {
  auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rest = bits % 65536;
  bits -= rest;
  const bool odd = bits / 65536 % 2 == 1;
  if (rest > 32768 || (rest == 32768 && odd)) bits += 65536;
  return std::bit_cast<float>(bits);
}

// An element of Adam with the options of torch, in float32 as its formulas stand.
struct Element {
  float param;
  float exp_avg = 0;
  float exp_avg_sq = 0;

  void step(float grad, int count) {
    exp_avg = exp_avg + 0.1F * (grad - exp_avg);
    exp_avg_sq = exp_avg_sq * 0.999F + float(1 - 0.999) * grad * grad;
    const auto slope = float(-(0.01 / (1 - std::pow(0.9, count))));
    const auto scale = float(std::sqrt(1 - std::pow(0.999, count)));
    const float denominator = std::sqrt(exp_avg_sq) / scale + 1e-8F;
    param = param + slope * exp_avg / denominator;
  }
  void round() {
    param = as_bfloat16(param);
    exp_avg = as_bfloat16(exp_avg);
    exp_avg_sq = as_bfloat16(exp_avg_sq);
  }
};

// ---- by an optimizer in float32 ---------------------------------------------

// Its parameters and states are rounded after each step.
template <class Kind>
struct Rounded {
  template <class Options>
  Rounded(const std::vector<Tensor>& params, const Options& options)
      : dtype(params[0].dtype()),
        wide(in_float32(params)),
        optimizer(wide, options) {}

  void round(Tensor tensor) const {
    tensor.copy_(tensor.to(dtype).to(DType::float32));
  }

  void step(const std::vector<Tensor>& params) {
    take_gradients(wide, params);
    optimizer.step();
    for (const Tensor& each : wide) {
      round(each);
      for (const auto& [name, state] : optimizer.states(each)) {
        if (state.dtype() == DType::float32) round(state);
      }
    }
  }

  void go_on_from(const Optimizer& other, const std::vector<Tensor>& params) {
    for (std::size_t i = 0; i < wide.size(); ++i) {
      wide[i].copy_(params[i].to(DType::float32));
      for (const auto& [name, state] : other.states(params[i])) {
        Tensor own = optimizer.state(wide[i], name);
        own.copy_(state.to(own.dtype()));
      }
    }
  }

  // Also the states that are in 16 bits, and no others.
  void check_same(const Optimizer& other,
                  const std::vector<Tensor>& params) const {
    for (std::size_t i = 0; i < wide.size(); ++i) {
      CHECK(same_bits(params[i], wide[i].to(dtype)));
      const ParamStates states = other.states(params[i]);
      const ParamStates wanted = optimizer.states(wide[i]);
      CHECK(states.size() == wanted.size());
      for (const auto& [name, state] : states) {
        CAPTURE(name);
        const bool number = state.dtype() == DType::float64;
        CHECK((number || state.dtype() == dtype));
        const Tensor& exact = wanted.at(name);
        CHECK(same_bits(state, number ? exact : exact.to(dtype)));
      }
    }
  }

  DType dtype;
  std::vector<Tensor> wide;
  Kind optimizer;
};

// Calls use.operator()<Kind>(options) for each optimizer, and for one of a user's.
// States begin with what 16 bits hold.
template <class Use>
void for_each_kind(Use use) {
  optimizer_rules::for_each_kind(
      [&]<class Kind, class Options>(Options options) {
        if constexpr (std::is_same_v<Kind, Rprop>) options.lr = 0x1p-7;
        use.template operator()<Kind>(options);
      });
  use.template operator()<Adam>(AdamOptions{.amsgrad = true});
  use.template operator()<AdamW>(AdamWOptions{});
  use.template operator()<Lion>(LionOptions{.lr = 0.01});
}

template <class Kind, class Options>
void check_rounded(const Options& options, DType dtype) {
  const std::vector<Tensor> eagerly = make_params(shapes, 3, dtype);
  const std::vector<Tensor> compiled = copies(eagerly);
  Kind eager(eagerly, options);
  Kind fused(compiled, options);
  Rounded<Kind> oracle(eagerly, options);
  CAPTURE(fused.name());
  eager.use_opmath();
  fused.use_opmath();
  auto step = compile([&] { fused.step(); }, {.fullgraph = true});
  for (int n = 0; n < 4; ++n) {
    set_gradients(eagerly, n);
    set_gradients(compiled, n);
    eager.step();
    step();
    oracle.step(eagerly);
    oracle.check_same(eager, eagerly);
    oracle.check_same(fused, compiled);
  }
  CHECK(step.counters().graph_breaks == 0);
  CHECK(step.counters().launches == 4);
  CHECK(step.counters().compilations == 1);
}

}  // namespace

TEST_CASE("Adam in bfloat16 is a loop over floats, rounded after each step") {
  const auto params = make_params({{700}}, 5, DType::bfloat16);
  std::vector<Element> elements;
  for (const double x : params[0].to_vector()) {
    elements.push_back({.param = float(x)});
  }
  Adam adam(params, {.lr = 0.01});
  adam.use_opmath();
  auto step = compile([&] { adam.step(); }, {.fullgraph = true});
  for (int n = 1; n <= 20; ++n) {
    set_gradients(params, n);
    const auto grads = params[0].grad().to_vector();
    step();
    std::vector<std::vector<double>> wanted(3);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      elements[i].step(float(grads[i]), n);
      elements[i].round();
      wanted[0].push_back(elements[i].param);
      wanted[1].push_back(elements[i].exp_avg);
      wanted[2].push_back(elements[i].exp_avg_sq);
    }
    CHECK(params[0].to_vector() == wanted[0]);
    CHECK(adam.state(params[0], "exp_avg").to_vector() == wanted[1]);
    CHECK(adam.state(params[0], "exp_avg_sq").to_vector() == wanted[2]);
  }
}

TEST_CASE("every optimizer computes in float32, eagerly and compiled") {
  for_each_kind([&]<class Kind>(auto options) {
    check_rounded<Kind>(options, DType::bfloat16);
  });
  check_rounded<AdamW>(AdamWOptions{}, DType::float16);
  check_rounded<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9}, DType::float16);
}

// Averages of rows and columns are kept in lists of their own.
TEST_CASE("Adafactor, switched after two steps") {
  const std::vector<Shape> matrices = {{12, 5}, {3, 40}, {7}, {9, 9}};
  const AdafactorOptions options = {.lr = 0.05, .eps = {1e-6, 1e-3}};
  const auto params = make_params(matrices, 3, DType::bfloat16);
  const auto others = copies(params);
  Adafactor eager(params, options);
  Adafactor fused(others, options);
  auto step = compile([&] { fused.step(); });
  Rounded<Adafactor> oracle(params, options);
  for (int n = 0; n < 7; ++n) {
    if (n == 2) {
      eager.use_opmath();
      fused.use_opmath();
      oracle.go_on_from(eager, params);
    }
    set_gradients(params, n);
    set_gradients(others, n);
    eager.step();
    step();
    oracle.step(params);
    CHECK(same_bits(params, others));
    if (n >= 2) oracle.check_same(fused, others);
  }
}

TEST_CASE("states that masters have left in float32 are read as they are") {
  const auto params = make_params({{300}, {70}}, 3, DType::bfloat16);
  const auto others = copies(params);
  Adam adam(params);
  Adam fused(others);
  auto step = compile([&] { fused.step(); });
  for (int n = 0; n < 6; ++n) {
    for (Adam* const each : {&adam, &fused}) {
      each->use_split_masters(n < 2);
      each->use_opmath(n >= 2);
    }
    set_gradients(params, n);
    set_gradients(others, n);
    adam.step();
    step();
    CHECK(same_bits(params, others));
  }
  CHECK(adam.state(params[0], "exp_avg").dtype() == DType::float32);
}

TEST_CASE("tensor by tensor, and gradients of another dtype") {
  const auto params = make_params(shapes, 3, DType::bfloat16);
  const auto others = copies(params);
  Adam adam(params);
  Adam one_by_one(others, {.foreach = false});
  adam.use_opmath();
  one_by_one.use_opmath();
  testing::Random random(8);
  for (int n = 0; n < 3; ++n) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      const Tensor wide = random_tensor(params[i].shape(), random);
      Tensor(params[i]).set_grad(wide);
      Tensor(others[i]).set_grad(wide);
    }
    adam.step();
    one_by_one.step();
    CHECK(same_bits(params, others));
  }
}

TEST_CASE("every backend, any number of threads: the same bits") {
  const auto first = make_params(shapes, 3, DType::bfloat16);
  Adam eager(first);
  eager.use_opmath();
  for (int n = 0; n < 3; ++n) {
    set_gradients(first, n);
    eager.step();
  }
  for (const int threads : {1, 2, 3, 7}) {
    const testing::Threads chosen(threads);
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      const auto params = make_params(shapes, 3, DType::bfloat16);
      Adam adam(params);
      adam.use_opmath();
      auto step = compile([&] { adam.step(); },
                          {.fullgraph = true, .backend = backend});
      for (int n = 0; n < 3; ++n) {
        set_gradients(params, n);
        step();
      }
      CHECK(step.counters().launches == 3);
      CHECK(same_bits(params, first));
    }
  }
}

TEST_CASE("a step moves 14 bytes an element, and keeps nothing besides") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Tensor param = full({9000}, 0.5, DType::bfloat16).to(device);
    Adam adam({param}, {.lr = 0.01});
    adam.use_opmath();
    auto step = compile([&] { adam.step(); }, {.fullgraph = true});
    for (int n = 0; n < 2; ++n) {
      set_gradients({param}, n);
      step();
    }
    // A gradient, and the parameter and two states twice; the step count twice.
    CHECK(step.counters().bytes_moved == 2 * (9000 * 14 + 16));
    CHECK(step.counters().launches == 2);
    CHECK(adam.memory().params == 2 * 9000);
    CHECK(adam.memory().states == 4 * 9000 + 8);
  }
}

TEST_CASE("with states in 8 bits") {
  const std::vector<Shape> large = {{256}, {3, 1000}, {255}, {0}};
  const auto params = make_params(large, 3, DType::bfloat16);
  const auto interpreted = copies(params);
  const auto wide = in_float32(params);
  Adam one(params);
  Adam other(interpreted);
  Adam oracle(wide);
  for (Adam* const each : {&one, &other, &oracle}) {
    each->use_opmath();
    each->use_8bit_states(true, 0);
  }
  auto step = compile([&] { one.step(); }, {.fullgraph = true});
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    set_gradients(interpreted, n);
    take_gradients(wide, params);
    step();
    other.step();
    oracle.step();
    for (std::size_t i = 0; i < wide.size(); ++i) {
      Tensor(wide[i]).copy_(wide[i].to(DType::bfloat16).to(DType::float32));
      CHECK(same_bits(params[i], wide[i].to(DType::bfloat16)));
      for (const char* const name : {"exp_avg", "exp_avg_sq"}) {
        CHECK(
            same_bits(one.state(params[i], name), oracle.state(wide[i], name)));
      }
    }
    CHECK(same_bits(interpreted, params));
  }
}

TEST_CASE("float32, masters and stochastic rounding stay as they are") {
  using Switch = void (*)(Adam&);
  const auto compare = [](DType dtype, Switch use) {
    const auto params = make_params(shapes, 3, dtype);
    const auto others = copies(params);
    Adam adam(params);
    Adam with(others);
    use(adam);
    use(with);
    with.use_opmath();
    for (int n = 0; n < 3; ++n) {
      set_gradients(params, n);
      set_gradients(others, n);
      adam.step();
      with.step();
      CHECK(same_bits(params, others));
    }
    CHECK(adam.memory().states == with.memory().states);
  };
  compare(DType::float32, [](Adam&) {});
  compare(DType::float64, [](Adam&) {});
  compare(DType::float16, [](Adam& adam) { adam.use_master_weights(); });
  compare(DType::bfloat16, [](Adam& adam) { adam.use_split_masters(); });
  compare(DType::bfloat16, [](Adam& adam) { adam.use_stochastic_rounding(); });
}

TEST_CASE("it may be switched between two steps, for one group alone") {
  const auto params = make_params({{300}, {300}}, 3, DType::bfloat16);
  const auto others = copies(params);
  // One with a group for each parameter, and each by itself.
  Adam both(std::vector<Adam::Group>{{{params[0]}}, {{params[1]}}});
  Adam first({others[0]});
  Adam second({others[1]});
  auto step = compile([&] { both.step(); }, {.fullgraph = true});
  for (int n = 0; n < 6; ++n) {
    both.group(1).opmath = n % 3 != 0;
    second.use_opmath(n % 3 != 0);
    both.group(0).opmath = n == 5;
    first.use_opmath(n == 5);
    set_gradients(params, n);
    set_gradients(others, n);
    step();
    first.step();
    second.step();
    CHECK(same_bits(params, others));
  }
}

TEST_CASE("an option of a group that is added") {
  Tensor param = full({3}, 1, DType::bfloat16);
  Tensor late = full({3}, 1, DType::bfloat16);
  Adam adam({param});
  adam.add_param_group({late}, {{"opmath", true}});
  CHECK_FALSE(adam.group(0).opmath);
  CHECK(adam.group(1).opmath);
  CHECK(adam.updates_in_float32());
}

TEST_CASE("a step that is skipped changes nothing") {
  check_skipped_steps(shapes, [](Adam& adam) { adam.use_opmath(); });
}

TEST_CASE(
    "a gradient is unscaled in float32, and one that is not finite skips") {
  // Divided by the scale it is less than float16 has.
  Tensor param = full({4}, 1, DType::float16);
  SGD sgd({param}, {.lr = 0x1p26});
  sgd.use_opmath();
  GradScaler scaler({.init_scale = 65536});
  auto step = compile([&] {
    scaler.step(sgd);
    scaler.update();
  });
  param.set_grad(full({4}, 0x1p-14, DType::float16));
  step();
  CHECK(param.to_vector() == std::vector<double>(4, 1 - 0x1p-4));
  CHECK(param.grad().to_vector() == std::vector<double>(4, 0x1p-14));
  param.set_grad(full({4}, infinity, DType::float16));
  step();
  CHECK(param.to_vector() == std::vector<double>(4, 1 - 0x1p-4));
}

TEST_CASE("what is no number stays one, and beyond the largest is infinity") {
  const auto step_from = [](double value, double gradient) {
    Tensor param = full({1000}, value, DType::bfloat16);
    param.set_grad(full({1000}, gradient, DType::bfloat16));
    SGD sgd({param}, {.lr = 1.0});
    sgd.use_opmath();
    auto step = compile([&] { sgd.step(); });
    step();
    return param.to_vector()[999];
  };
  CHECK(std::isnan(step_from(std::nan(""), 0)));
  CHECK(std::isnan(step_from(infinity, infinity)));
  CHECK(step_from(-infinity, 1) == -infinity);
  CHECK(step_from(0x1.fep127, -0x1p119) == infinity);    // half a digit
  CHECK(step_from(0x1.fep127, -0x1p118) == 0x1.fep127);  // a quarter
  CHECK(step_from(0x1p-133, 0) == 0x1p-133);
}

TEST_CASE("state dicts and checkpoints tell whether it was on") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/run.safetensors";
  const auto make = [](std::uint64_t seed) {
    return make_params({{5, 3}, {4000}}, seed, DType::bfloat16);
  };
  const auto params = make(1);
  Adam one(params, {.lr = 0.01});
  one.use_opmath();
  set_gradients(params, 0);
  one.step();
  save_checkpoint(file, one);

  const auto loaded = make(2);
  Adam two(loaded, {.lr = 0.5});
  two.load_state_dict(one.state_dict());
  CHECK(two.group(0).opmath);
  for (std::size_t i = 0; i < params.size(); ++i) {
    Tensor(loaded[i]).copy_(params[i]);
  }
  const auto from_file = make(3);
  Adam three(from_file, {.lr = 0.01});
  CHECK(contains(message_of<Error>([&] { load_checkpoint(file, three); }),
                 "opmath\" is true in the file, but false here"));
  three.use_opmath();
  load_checkpoint(file, three);
  for (int n = 1; n < 4; ++n) {
    for (const auto* all : {&params, &loaded, &from_file}) {
      set_gradients(*all, n);
    }
    one.step();
    two.step();
    three.step();
    CHECK(same_bits(loaded, params));
    CHECK(same_bits(from_file, params));
  }
}

TEST_CASE("what does not tell leaves it as it is") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/run.safetensors";
  const auto params = make_params({{40}}, 1, DType::bfloat16);
  Adam without(params);
  without.step();
  save_checkpoint(file, without);
  Adam with(make_params({{40}}, 2, DType::bfloat16));
  with.use_opmath();
  with.load_state_dict(without.state_dict());
  CHECK(with.group(0).opmath);
  load_checkpoint(file, with);
  CHECK(with.group(0).opmath);
  CHECK(same_bits(with.parameters(), params));
}

TEST_CASE("it says so where a recompile is explained") {
  const auto params = make_params({{30}}, 3, DType::bfloat16);
  Adam adam(params);
  auto step = compile([&] { adam.step(); }, {.fullgraph = true});
  step();
  adam.use_opmath();
  LogCapture log(Log::recompiles);
  step();
  CHECK(contains(log.take(), "opmath"));
}
