// Parameters in bfloat16 that are the upper halves of float32 masters.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/checkpoint/safetensors.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/clip_grad.h"
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
constexpr float largest = std::numeric_limits<float>::max();
const std::vector<Shape> shapes = {{300}, {}, {0}, {3, 4}, {9000}};

// ---- what halves are, by hand -----------------------------------------------

// The float whose bits are those of the upper half and of the lower one, added up.
float joined(BFloat16 high, Int16 low) {
  const std::uint32_t bits = std::uint32_t(high.bits) * 65536U +
                             std::uint32_t(std::int32_t(low.number));
  return std::bit_cast<float>(bits);
}

Tensor joined(const Tensor& high, const Tensor& low) {
  const Tensor highs = high.cpu().contiguous();
  const Tensor lows = low.cpu().contiguous();
  Tensor master = empty(high.shape());
  for (std::int64_t i = 0; i < master.numel(); ++i) {
    master.data<float>()[i] =
        joined(highs.data<BFloat16>()[i], lows.data<Int16>()[i]);
  }
  return master;
}

std::vector<Tensor> masters_of(const Optimizer& optimizer) {
  std::vector<Tensor> all;
  for (const Tensor& param : optimizer.parameters()) {
    all.push_back(joined(param, optimizer.state(param, "low_half")));
  }
  return all;
}

// The middle between two upper halves goes away from zero.
BFloat16 nearest(float master) {
  BFloat16 high;
  const auto bits = std::bit_cast<std::uint32_t>(master);
  high.bits = std::uint16_t((bits + 0x8000U) / 65536U);
  return high;
}

bool are_nearest(const std::vector<Tensor>& params,
                 const std::vector<Tensor>& masters) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Tensor high = params[i].cpu().contiguous();
    const Tensor master = masters[i].cpu().contiguous();
    for (std::int64_t k = 0; k < high.numel(); ++k) {
      if (high.data<BFloat16>()[k].bits !=
          nearest(master.data<float>()[k]).bits) {
        return false;
      }
    }
  }
  return true;
}

// Of a parameter that has had a step.
void set_master(const Optimizer& optimizer, Tensor param, float master) {
  Tensor low = optimizer.state(param, "low_half");
  const BFloat16 high = nearest(master);
  const std::uint32_t rest =
      std::bit_cast<std::uint32_t>(master) - std::uint32_t(high.bits) * 65536U;
  for (std::int64_t i = 0; i < param.numel(); ++i) {
    param.data<BFloat16>()[i] = high;
    low.data<Int16>()[i].number = std::int16_t(rest);
  }
}

// Calls use.operator()<Kind>(options) for each optimizer, and for one of a user's.
template <class Use>
void for_each_kind(Use use) {
  optimizer_rules::for_each_kind(use);
  use.template operator()<Adam>(AdamOptions{.amsgrad = true});
  use.template operator()<AdamW>(AdamWOptions{});
  use.template operator()<Lion>(LionOptions{.lr = 0.01});
}

}  // namespace

TEST_CASE("every optimizer moves both halves as it moves a float32") {
  for_each_kind([&]<class Kind>(auto options) {
    std::vector<Tensor> eagerly = make_params(shapes, 3, DType::bfloat16);
    std::vector<Tensor> compiled = copies(eagerly);
    std::vector<Tensor> wide = in_float32(eagerly);
    Kind eager(eagerly, options);
    Kind fused(compiled, options);
    Kind oracle(wide, options);
    CAPTURE(oracle.name());
    eager.use_split_masters();
    fused.use_split_masters();
    auto step = compile([&] { fused.step(); }, {.fullgraph = true});
    for (int n = 0; n < 6; ++n) {
      set_gradients(eagerly, n);
      set_gradients(compiled, n);
      take_gradients(wide, eagerly);
      eager.step();
      step();
      oracle.step();
      CHECK(same_bits(masters_of(eager), wide));
      CHECK(same_bits(masters_of(fused), wide));
      CHECK(same_bits(eager.master_params(), wide));
      CHECK(are_nearest(eagerly, wide));
      CHECK(same_bits(compiled, eagerly));
    }
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().launches == 6);
    CHECK(step.counters().compilations == 1);
  });
}

TEST_CASE("every backend, any number of threads: the same halves") {
  std::vector<Tensor> wide =
      in_float32(make_params(shapes, 3, DType::bfloat16));
  Adam oracle(wide);
  for (int n = 0; n < 3; ++n) {
    const auto narrow = make_params(shapes, 3, DType::bfloat16);
    set_gradients(narrow, n);
    take_gradients(wide, narrow);
    oracle.step();
  }
  for (const int threads : {1, 3}) {
    const testing::Threads chosen(threads);
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      const auto params = make_params(shapes, 3, DType::bfloat16);
      Adam adam(params);
      adam.use_split_masters();
      auto step = compile([&] { adam.step(); },
                          {.fullgraph = true, .backend = backend});
      for (int n = 0; n < 3; ++n) {
        set_gradients(params, n);
        step();
      }
      CHECK(step.counters().launches == 3);
      CHECK(same_bits(masters_of(adam), wide));
      CHECK(are_nearest(params, wide));
    }
  }
}

TEST_CASE("a step moves 26 bytes an element, and with states in 8 bits 14") {
  for (const Device& device : {cpu_device, tested_device()}) {
    for (const bool coded : {false, true}) {
      Tensor param = full({9000}, 0.5, DType::bfloat16).to(device);
      Adam adam({param}, {.lr = 0.01});
      adam.use_split_masters();
      adam.use_8bit_states(coded);
      auto step = compile([&] { adam.step(); }, {.fullgraph = true});
      for (int n = 0; n < 2; ++n) {
        set_gradients({param}, n);
        step();
      }
      // A gradient, two halves twice, and two states; and the step count.
      const std::int64_t states = coded ? 9000 * 4 + 36 * 16 : 9000 * 16;
      CHECK(step.counters().bytes_moved ==
            2 * (9000 * (2 + 4 + 4) + states + 16));
      CHECK(step.counters().launches == 2);
      const OptimizerMemory memory = adam.memory();
      CHECK(memory.params == 2 * 9000);
      CHECK(memory.states == 9000 * (2 + (coded ? 2 : 8)) + 8);
      CHECK(adam.state(param, "low_half").dtype() == DType::int16);
    }
  }
}

TEST_CASE("with states in 8 bits, as with masters that are whole") {
  const std::vector<Shape> large = {{256}, {3, 1000}, {70000}, {255}, {}, {0}};
  for_each_kind([&]<class Kind>(auto options) {
    std::vector<Tensor> split = make_params(large, 3, DType::bfloat16);
    std::vector<Tensor> simulated = copies(split);
    std::vector<Tensor> whole = copies(split);
    Kind one(split, options);
    Kind other(simulated, options);
    Kind oracle(whole, options);
    CAPTURE(oracle.name());
    one.use_split_masters();
    other.use_split_masters();
    oracle.use_master_weights();
    for (Kind* const each : {&one, &other, &oracle}) {
      each->use_8bit_states(true, 256);
    }
    auto step = compile([&] { one.step(); }, {.fullgraph = true});
    auto on_gpu = compile([&] { other.step(); },
                          {.fullgraph = true, .backend = Backend::simulated});
    for (int n = 0; n < 3; ++n) {
      for (const auto* params : {&split, &simulated, &whole}) {
        set_gradients(*params, n);
      }
      step();
      on_gpu();
      oracle.step();
      CHECK(same_bits(masters_of(one), oracle.master_params()));
      CHECK(same_bits(masters_of(other), oracle.master_params()));
    }
  });
}

TEST_CASE("tensors in any order") {
  const auto dense = make_params({{40, 30}, {200, 2}}, 3, DType::bfloat16);
  const std::vector<Tensor> params = {dense[0].t(), dense[1].narrow(1, 0, 1)};
  const std::vector<Tensor> wide = in_float32(params);
  Adam adam(params);
  Adam oracle(wide);
  adam.use_split_masters();
  auto step = compile([&] { adam.step(); });
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    take_gradients(wide, params);
    step();
    oracle.step();
    for (std::size_t i = 0; i < params.size(); ++i) {
      CHECK(same_bits(masters_of(adam)[i], wide[i].contiguous()));
    }
  }
}

TEST_CASE("the middle, the largest float and what is no number") {
  struct Case {
    float master;
    double param;
  };
  // What is written here stays as it is while gradients are zero. 1 + 2^-8 lies in the middle between two numbers of bfloat16.
  const std::vector<Case> cases = {{1 + 0x1p-8F, 1 + 0x1p-7},
                                   {-1 - 0x1p-8F, -1 - 0x1p-7},
                                   {0x1.00fffep0F, 1},
                                   {largest, infinity},
                                   {-largest, -infinity},
                                   {0x1.fefffep127F, 0x1.fep127},
                                   {0x1p-149F, 0},
                                   {float(infinity), infinity}};
  for (const Case& each : cases) {
    CAPTURE(each.master);
    Tensor param = zeros({3}, DType::bfloat16);
    param.set_grad(zeros({3}, DType::bfloat16));
    SGD sgd({param}, {.lr = 1.0});
    sgd.use_split_masters();
    auto step = compile([&] { sgd.step(); });
    step();
    set_master(sgd, param, each.master);
    CHECK(same_bits(masters_of(sgd)[0], full({3}, double(each.master))));
    CHECK(param.to_vector() == std::vector<double>(3, each.param));
    step();
    CHECK(same_bits(masters_of(sgd)[0], full({3}, double(each.master))));
    CHECK(param.to_vector() == std::vector<double>(3, each.param));
  }
}

TEST_CASE("a float that rounds to infinity comes back from there") {
  Tensor param = full({2}, 0x1.fep127, DType::bfloat16);
  SGD sgd({param}, {.lr = 1.0});
  sgd.use_split_masters();
  auto step = compile([&] { sgd.step(); });
  const double most = 0x1p119;  // half of the last digit of the parameter
  for (const double gradient : {-most, most}) {
    param.set_grad(full({2}, gradient, DType::bfloat16));
    step();
    const bool up = gradient < 0;
    const double master = up ? 0x1.ffp127 : 0x1.fep127;
    CHECK(masters_of(sgd)[0].to_vector() == std::vector<double>(2, master));
    CHECK(param.to_vector() == std::vector<double>(2, up ? infinity : master));
  }
}

TEST_CASE("a NaN stays in its element") {
  for (const double bad : {std::nan(""), infinity}) {
    Tensor param = full({500}, 1, DType::bfloat16);
    std::vector<double> gradients(500, 0x1p-10);
    gradients[7] = bad;
    param.set_grad(tensor(gradients).to(DType::bfloat16));
    SGD sgd({param}, {.lr = 1.0, .momentum = 0.9});
    sgd.use_split_masters();
    auto step = compile([&] { sgd.step(); });
    step();
    step();
    const double good = double(float(1 - 0x1p-10 * (1 + float(1.9F))));
    const auto masters = masters_of(sgd)[0].to_vector();
    for (std::size_t i = 0; i < masters.size(); ++i) {
      if (i == 7) continue;
      CHECK(masters[i] == doctest::Approx(good));
    }
    CHECK_FALSE(std::isfinite(param.to_vector()[7]));
    CHECK(sgd.state(param, "low_half").to_vector()[7] == 0);
  }
}

TEST_CASE("what is written between two steps is the upper half from then on") {
  Tensor param = full({4}, 1, DType::bfloat16);
  SGD sgd({param}, {.lr = 0x1p-10});
  sgd.use_split_masters();
  param.set_grad(full({4}, 1, DType::bfloat16));
  sgd.step();
  CHECK(masters_of(sgd)[0].to_vector() == std::vector<double>(4, 1 - 0x1p-10));
  const double low = sgd.state(param, "low_half").to_vector()[0];
  param.fill_(4);
  sgd.step();
  const double kept = 4 + low * 0x1p-22;  // digits of floats below it
  CHECK(masters_of(sgd)[0].to_vector() ==
        std::vector<double>(4, kept - 0x1p-10));
}

namespace {

// Everything around a step.
struct Training {
  explicit Training(const Device& device) {
    for (const Tensor& each :
         make_params({{300}, {9000}}, 1, DType::bfloat16)) {
      params.push_back(each.to(device));
    }
    adam = std::make_unique<Adam>(params, AdamOptions{.lr = 0.01});
    adam->use_split_masters();
  }

  void set_scaled_gradients(int step, bool bad) {
    testing::Random random(std::uint64_t(step) + 100);
    for (Tensor param : params) {
      auto values = random_tensor(param.shape(), random, 0.25).to_vector();
      for (double& x : values) x *= 64;
      if (bad) values.back() = infinity;
      param.set_grad(tensor(values).to(DType::bfloat16).to(param.device()));
    }
  }

  void tail() {
    scaler.unscale_(*adam);
    clip_grad_norm_(params, 20.0);
    scaler.step(*adam);
    scaler.update();
  }

  std::vector<Tensor> params;
  std::unique_ptr<Adam> adam;
  GradScaler scaler{{.init_scale = 64, .growth_interval = 1000}};
};

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copied;
  for (const Tensor& each : tensors) copied.push_back(each.to(cpu_device));
  return copied;
}

}  // namespace

TEST_CASE("halves go with the whole tail, in its launch, skipped steps too") {
  for (const Device& device : {cpu_device, tested_device()}) {
    Training fused(device);
    Training eager(cpu_device);
    auto step = compile([&] { fused.tail(); }, {.fullgraph = true});
    for (int n = 0; n < 6; ++n) {
      const bool bad = n % 3 == 1;
      fused.set_scaled_gradients(n, bad);
      eager.set_scaled_gradients(n, bad);
      const auto before = copies(on_host(fused.params));
      step();
      eager.tail();
      CHECK(same_bits(on_host(fused.params), eager.params));
      CHECK(same_bits(masters_of(*fused.adam), masters_of(*eager.adam)));
      CHECK(same_bits(on_host(fused.params), before) == bad);
    }
    CHECK(fused.adam->state(fused.params[0], "step").item() == 4);
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().launches == 6);
  }
}

TEST_CASE("a scale is taken out of gradients that are float32 already") {
  Tensor param = full({5}, 1, DType::bfloat16);
  SGD sgd({param}, {.lr = 1.0});
  sgd.use_split_masters();
  CHECK(sgd.updates_in_float32());
  GradScaler scaler({.init_scale = 65536});
  param.set_grad(full({5}, 0x1p-120, DType::bfloat16));
  scaler.step(sgd);
  CHECK(param.grad().to_vector() == std::vector<double>(5, 0x1p-120));
}

TEST_CASE("only parameters in bfloat16 of groups that want them are split") {
  const std::vector<Tensor> params = {full({3}, 1, DType::bfloat16),
                                      full({3}, 1, DType::float32),
                                      full({3}, 1, DType::bfloat16)};
  AdamW adamw(std::vector<AdamW::Group>{{{params[0], params[1]}}});
  adamw.group(0).split_masters = true;
  adamw.add_param_group({params[2]}, {{"master_weights", true}});
  set_gradients(adamw.parameters(), 0);
  adamw.step();
  CHECK(adamw.state(params[0], "low_half").dtype() == DType::int16);
  CHECK(adamw.state(params[0], "exp_avg_sq").dtype() == DType::float32);
  CHECK_FALSE(adamw.state(params[0], "master_param").defined());
  CHECK_FALSE(adamw.state(params[1], "low_half").defined());
  CHECK_FALSE(adamw.state(params[2], "low_half").defined());
  CHECK(adamw.state(params[2], "master_param").dtype() == DType::float32);

  Tensor late = full({2}, 1, DType::float16);
  adamw.add_param_group({late}, {{"split_masters", true}});
  late.set_grad(full({2}, 1, DType::float16));
  CHECK(message_of<Error>([&] { adamw.step(); }) ==
        "split_masters: a parameter with shape [2] is in float16, which is not "
        "the upper half of a float32; put it in a group with master_weights");
  CHECK(adamw.state(params[0], "step").item() == 1);
  CHECK_FALSE(adamw.state(late, "exp_avg").defined());
}

TEST_CASE("masters of one kind become those of the other, in every bit") {
  const auto params = make_params(shapes, 3, DType::bfloat16);
  const auto wide = in_float32(params);
  Adam adam(params);
  Adam oracle(wide);
  const auto step = [&](int n) {
    set_gradients(params, n);
    take_gradients(wide, params);
    adam.step();
    oracle.step();
    return same_bits(adam.master_params(), wide);
  };
  adam.use_master_weights();
  CHECK(step(0));
  // In the middle between two numbers: its parameter is the even one.
  for (const Tensor& each : {adam.state(params[0], "master_param"), wide[0]}) {
    Tensor(each).data<float>()[0] = 1 + 0x1p-8F;
  }
  Tensor(params[0]).data<BFloat16>()[0] = BFloat16(1.0);
  adam.use_split_masters();
  CHECK(step(1));
  CHECK_FALSE(adam.state(params[0], "master_param").defined());
  CHECK(same_bits(masters_of(adam), wide));
  CHECK(are_nearest(params, wide));
  adam.use_split_masters(false);
  CHECK(step(2));
  CHECK_FALSE(adam.state(params[0], "low_half").defined());
  adam.use_split_masters();
  CHECK(step(3));
}

TEST_CASE("a step that fails leaves masters and parameters as they were") {
  Tensor param = full({4}, 1, DType::bfloat16);
  param.set_grad(full({4}, 0x1p-8, DType::bfloat16));
  Tensor half = full({4}, 1, DType::float16);
  half.set_grad(full({4}, 1, DType::float16));
  SGD sgd({param}, {.lr = 1.0});
  sgd.use_master_weights();
  sgd.step();
  param.fill_(1);
  Tensor master = sgd.state(param, "master_param");
  master.fill_(1 + 0x1p-8);
  sgd.add_param_group({half});
  sgd.use_split_masters();
  CHECK_THROWS_AS(sgd.step(), Error);
  CHECK(sgd.state(param, "master_param").impl() == master.impl());
  CHECK_FALSE(sgd.state(param, "low_half").defined());
  CHECK(param.to_vector() == std::vector<double>(4, 1));
  CHECK(master.to_vector() == std::vector<double>(4, 1 + 0x1p-8));
}

TEST_CASE("halves go on from a state dict and from a checkpoint") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/run.safetensors";
  const auto make = [](std::uint64_t seed) {
    return make_params({{5, 3}, {40}}, seed, DType::bfloat16);
  };
  const auto params = make(1);
  Adam one(params, {.lr = 0.01});
  one.use_split_masters();
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    one.step();
  }
  save_checkpoint(file, one);
  const TensorFile read = read_safetensors(file);  // its tensors lie in it
  const Tensor& low = read.tensors.at("param_groups.0.state.0.low_half");
  CHECK(low.dtype() == DType::int16);
  CHECK(bitwise_equal(low, one.state(params[0], "low_half")));
  const auto loaded_params = copies(params);
  Adam from_dict(loaded_params, {.lr = 0.01});
  from_dict.load_state_dict(one.state_dict());
  CHECK(from_dict.group(0).split_masters);
  const auto resumed_params = make(2);
  Adam resumed(resumed_params, {.lr = 0.01});
  resumed.use_master_weights();
  CHECK(contains(
      message_of<Error>([&] { load_checkpoint(file, resumed); }),
      "\"param_groups.0.master_weights\" is false in the file, but true here"));
  resumed.use_master_weights(false);
  CHECK(contains(
      message_of<Error>([&] { load_checkpoint(file, resumed); }),
      "\"param_groups.0.split_masters\" is true in the file, but false here"));
  resumed.use_split_masters();
  load_checkpoint(file, resumed);
  for (Adam* const each : {&one, &from_dict, &resumed}) {
    for (int n = 3; n < 6; ++n) {
      set_gradients(each->parameters(), n);
      each->step();
    }
  }
  CHECK(same_bits(masters_of(from_dict), masters_of(one)));
  CHECK(same_bits(masters_of(resumed), masters_of(one)));
  CHECK(same_bits(resumed_params, params));
  CHECK(same_bits(loaded_params, params));
}
