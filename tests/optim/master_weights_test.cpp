// Parameters in 16 bits that an optimizer keeps in float32 besides.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "fusebook/swa_utils/averaged_model.h"
#include "support/checkpoint_testing.h"
#include "support/masters_testing.h"
#include "support/optimizer_rules.h"
#include "support/tested_device.h"

using namespace fuse;
using namespace masters_testing;
using namespace step_testing;
using testing::contains;
using testing::message_of;
using testing::tested_device;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<Shape> shapes = {{300}, {}, {0}, {3, 4}, {9000}};

// ---- what masters are, by hand ----------------------------------------------

// The upper half of a float, rounded to even.
double rounded_to_bfloat16(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(float(x));
  const std::uint32_t half = 0x7fffU + (bits >> 16U & 1U);
  return double(std::bit_cast<float>((bits + half) & 0xffff0000U));
}

bool are_rounded(const std::vector<Tensor>& params,
                 const std::vector<Tensor>& masters) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!same_bits(params[i], masters[i].to(params[i].dtype()))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("updates too small for 16 bits add up in the masters") {
  for (const bool with_masters : {false, true}) {
    Tensor param = full({4}, 1, DType::bfloat16);
    SGD sgd({param}, {.lr = 0x1p-10});
    sgd.use_master_weights(with_masters);
    auto step = compile([&] { sgd.step(); }, {.fullgraph = true});
    for (int n = 1; n <= 40; ++n) {
      param.set_grad(full({4}, 1, DType::bfloat16));
      step();
      const double master = 1 - n * 0x1p-10;
      const double expected = with_masters ? rounded_to_bfloat16(master) : 1;
      CHECK(param.to_vector() == std::vector<double>(4, expected));
      if (!with_masters) continue;
      CHECK(sgd.state(param, "master_param").to_vector() ==
            std::vector<double>(4, master));
    }
    CHECK(step.counters().launches == 40);
    CHECK(step.counters().compilations == 1);
  }
}

TEST_CASE("every optimizer moves masters as it moves float32 parameters") {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    CAPTURE(name_of(dtype));
    optimizer_rules::for_each_kind([&]<class Kind>(auto options) {
      std::vector<Tensor> eagerly = make_params(shapes, 3, dtype);
      std::vector<Tensor> compiled = copies(eagerly);
      std::vector<Tensor> wide = in_float32(eagerly);
      Kind eager(eagerly, options);
      Kind fused(compiled, options);
      Kind oracle(wide, options);
      CAPTURE(oracle.name());
      eager.use_master_weights();
      fused.use_master_weights();
      auto step = compile([&] { fused.step(); }, {.fullgraph = true});
      for (int n = 0; n < 6; ++n) {
        set_gradients(eagerly, n);
        set_gradients(compiled, n);
        take_gradients(wide, eagerly);
        eager.step();
        step();
        oracle.step();
        CHECK(same_bits(eager.master_params(), wide));
        CHECK(same_bits(fused.master_params(), wide));
        CHECK(are_rounded(eagerly, wide));
        CHECK(are_rounded(compiled, wide));
      }
      CHECK(step.counters().graph_breaks == 0);
      CHECK(step.counters().launches == 6);
      CHECK(step.counters().compilations == 1);
    });
  }
}

TEST_CASE("a step with masters moves 28 bytes an element, on a GPU too") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Tensor param = full({9000}, 0.5, DType::bfloat16).to(device);
    Adam adam({param}, {.lr = 0.01});
    adam.use_master_weights();
    auto step = compile([&] { adam.step(); }, {.fullgraph = true});
    set_gradients({param}, 0);
    step();
    // A gradient of 2 bytes, the parameter stored, and three lists in float32;
    // and the step count.
    CHECK(step.counters().bytes_moved == 9000 * (2 + 2 + 3 * 8) + 16);
    CHECK(step.counters().launches == 1);
    CHECK(adam.state(param, "exp_avg").dtype() == DType::float32);
  }
}

namespace {

// Everything around a step of float16 parameters.
struct Training {
  explicit Training(const Device& device) {
    for (const Tensor& each : make_params({{300}, {9000}}, 1, DType::float16)) {
      params.push_back(each.to(device));
      averaged.push_back(zeros_like(each).to(device).to(DType::float32));
    }
    adam = std::make_unique<Adam>(params, AdamOptions{.lr = 0.01});
    adam->use_master_weights();
    averages = std::make_unique<ParameterAverages>(averaged,
                                                   get_ema_multi_avg_fn(0.9));
    set_gradients(params, 0);
    adam->step();  // there are masters from now on
  }

  void set_scaled_gradients(int step, bool bad) {
    testing::Random random(std::uint64_t(step) + 100);
    for (Tensor param : params) {
      auto values = random_tensor(param.shape(), random, 0.25).to_vector();
      for (double& x : values) x *= 64;
      if (bad) values.back() = infinity;
      param.set_grad(tensor(values).to(DType::float16).to(param.device()));
    }
  }

  void tail() {
    scaler.unscale_(*adam);
    clip_grad_norm_(params, 20.0);
    scaler.step(*adam);
    averages->update(adam->master_params(), {.skip = scaler.found_inf(*adam)});
    scaler.update();
  }

  std::vector<Tensor> params;
  std::vector<Tensor> averaged;
  std::unique_ptr<Adam> adam;
  std::unique_ptr<ParameterAverages> averages;
  GradScaler scaler{{.init_scale = 64, .growth_interval = 1000}};
};

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copied;
  for (const Tensor& each : tensors) copied.push_back(each.to(cpu_device));
  return copied;
}

}  // namespace

TEST_CASE("masters go with the whole tail, in its launch") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Training fused(device);
    Training eager(cpu_device);
    auto step = compile([&] { fused.tail(); }, {.fullgraph = true});
    for (int n = 0; n < 8; ++n) {
      const bool bad = n % 3 == 1;
      fused.set_scaled_gradients(n, bad);
      eager.set_scaled_gradients(n, bad);
      const std::vector<Tensor> before = copies(on_host(fused.params));
      step();
      eager.tail();
      CHECK(same_bits(on_host(fused.params), eager.params));
      CHECK(same_bits(on_host(fused.adam->master_params()),
                      eager.adam->master_params()));
      CHECK(same_bits(on_host(fused.averaged), eager.averaged));
      CHECK(same_bits(on_host(fused.params), before) == bad);
      CHECK(fused.scaler.state_dict() == eager.scaler.state_dict());
    }
    CHECK(fused.adam->state(fused.params[0], "step").item() == 6);
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().compilations == 1);
    CHECK(step.counters().launches == 8);
  }
}

// In float16, 2^-20 is a number with few digits, and 2^-30 is none.
TEST_CASE("a scale keeps gradients that float16 has no room for") {
  for (const Device& device : {cpu_device, tested_device()}) {
    for (const bool unscales : {false, true}) {
      Tensor param = full({5}, 1, DType::float16).to(device);
      SGD sgd({param}, {.lr = 0x1p10});
      sgd.use_master_weights();
      GradScaler scaler({.init_scale = 65536});
      auto step = compile(
          [&] {
            if (unscales) scaler.unscale_(sgd);
            scaler.step(sgd);
            scaler.update();
          },
          {.fullgraph = true});
      scaler.scale(
          full({}, 1).to(device));  // the numbers are there from now on
      param.set_grad(full({5}, 0x1p-14, DType::float16).to(device));
      step();
      const double gradient = unscales ? 0 : 0x1p-30;
      CHECK(sgd.master_params()[0].cpu().to_vector() ==
            std::vector<double>(5, double(float(1 - 0x1p10 * gradient))));
      CHECK(param.grad().cpu().to_vector() ==
            std::vector<double>(5, unscales ? 0 : 0x1p-14));
      CHECK(step.counters().launches == 1);
      param.set_grad(full({5}, infinity, DType::float16).to(device));
      step();
      CHECK(scaler.get_scale() == 32768);
      CHECK(sgd.state(param, "step").item() == 1);
    }
  }
}

TEST_CASE("only 16-bit parameters of groups that want them have masters") {
  const auto make = [] {
    return std::vector<Tensor>{full({3}, 1, DType::bfloat16),
                               full({3}, 1, DType::float32),
                               full({3}, 1, DType::bfloat16)};
  };
  const std::vector<Tensor> params = make();
  AdamW adamw(std::vector<AdamW::Group>{{{params[0], params[1]}}});
  adamw.group(0).master_weights = true;
  adamw.add_param_group({params[2]});
  Tensor late = full({2}, 1, DType::float16);
  adamw.add_param_group({late}, {{"master_weights", true}});
  set_gradients(adamw.parameters(), 0);
  adamw.step();
  CHECK(adamw.state(params[0], "master_param").dtype() == DType::float32);
  CHECK(adamw.state(params[0], "exp_avg_sq").dtype() == DType::float32);
  CHECK_FALSE(adamw.state(params[1], "master_param").defined());
  CHECK_FALSE(adamw.state(params[2], "master_param").defined());
  CHECK(adamw.state(params[2], "exp_avg_sq").dtype() == DType::bfloat16);
  CHECK(adamw.state(late, "master_param").dtype() == DType::float32);
  const auto moved = adamw.master_params();
  CHECK(moved[1].impl() == params[1].impl());
  CHECK(moved[2].impl() == params[2].impl());
  CHECK(moved[3].impl() == adamw.state(late, "master_param").impl());
}

TEST_CASE(
    "masters are switched on before the first step, and off at any time") {
  Tensor param = full({3}, 1, DType::bfloat16);
  Adam adam({param}, {.lr = 0x1p-12});
  set_gradients({param}, 0);
  adam.step();
  adam.use_master_weights();
  CHECK(
      message_of<Error>([&] { adam.step(); }) ==
      "the state \"exp_avg\" is kept in bfloat16 already, but masters and "
      "stochastic rounding need it in float32; switch them on before the first "
      "step");
  CHECK(adam.state(param, "step").item() == 1);
  adam.use_master_weights(false);
  adam.step();

  SGD sgd({param}, {.lr = 0x1p-12});
  sgd.use_master_weights();
  sgd.step();
  sgd.use_master_weights(false);
  sgd.step();
  CHECK_FALSE(sgd.state(param, "master_param").defined());
  param.fill_(5);
  sgd.use_master_weights();
  param.set_grad(zeros_like(param));
  sgd.step();
  CHECK(sgd.state(param, "master_param").to_vector() ==
        std::vector<double>(3, 5));
}

TEST_CASE("masters go on from a state dict and from a checkpoint") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/run.safetensors";
  const auto make = [](std::uint64_t seed) {
    return make_params({{5, 3}, {40}}, seed, DType::bfloat16);
  };
  const auto params = make(1);
  Adam one(params, {.lr = 0.01});
  one.use_master_weights();
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    one.step();
  }
  save_checkpoint(file, one);
  const auto loaded_params = copies(params);
  Adam from_dict(loaded_params, {.lr = 0.01});
  from_dict.load_state_dict(one.state_dict());
  CHECK(from_dict.group(0).master_weights);
  const auto resumed_params = make(2);
  Adam resumed(resumed_params, {.lr = 0.01});
  CHECK(contains(
      message_of<Error>([&] { load_checkpoint(file, resumed); }),
      "\"param_groups.0.master_weights\" is true in the file, but false here"));
  resumed.use_master_weights();
  load_checkpoint(file, resumed);
  for (Adam* const each : {&one, &from_dict, &resumed}) {
    for (int n = 3; n < 6; ++n) {
      set_gradients(each->parameters(), n);
      each->step();
    }
  }
  CHECK(same_bits(from_dict.master_params(), one.master_params()));
  CHECK(same_bits(resumed.master_params(), one.master_params()));
  CHECK(same_bits(resumed_params, params));
  CHECK(same_bits(loaded_params, params));
}

TEST_CASE("a state is known by its name, wherever that is written") {
  const auto spec = [](const std::string& name) {
    return StateSpec{.name = name};
  };
  // Copies, at addresses of their own.
  const std::string whole(master_name);
  const std::string half(low_half_name);
  const std::string key(rounding_key_name);
  CHECK(is_master(spec(whole)));
  CHECK(is_master(spec(half)));
  CHECK(is_rounding_key(spec(key)));
  CHECK(!is_master(spec(key)));
  CHECK(!is_rounding_key(spec(half)));
  CHECK(spec(whole) == StateSpec{.name = "master_param"});
}
