// Parameters in bfloat16 without masters, rounded up or down by random bits.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

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

// ---- what is drawn, by hand -------------------------------------------------

// Philox 4x32-10 by its definition: ten times, a product of each of two words.
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t stream,
                                    std::uint64_t index) {
  std::array<std::uint64_t, 4> c = {index % (1ULL << 32), index >> 32,
                                    stream % (1ULL << 32), stream >> 32};
  std::array<std::uint64_t, 2> k = {key % (1ULL << 32), key >> 32};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = c[0] * 3528531795U;
    const std::uint64_t second = c[2] * 3449720151U;
    c = {(second >> 32) ^ c[1] ^ k[0], second % (1ULL << 32),
         (first >> 32) ^ c[3] ^ k[1], first % (1ULL << 32)};
    k = {(k[0] + 2654435769U) % (1ULL << 32),
         (k[1] + 3144134277U) % (1ULL << 32)};
  }
  return {std::uint32_t(c[0]), std::uint32_t(c[1]), std::uint32_t(c[2]),
          std::uint32_t(c[3])};
}

std::uint64_t key_of(std::uint32_t seed, std::size_t number) {
  const auto words = philox(seed, number, 0);
  return (words[0] + (std::uint64_t(words[1]) << 32)) / 2048;
}

// Element `position` of a parameter takes 16 bits of the number that serves eight.
unsigned drawn(std::uint64_t key, std::int64_t step, std::int64_t position) {
  const auto words =
      philox(key, std::uint64_t(step), std::uint64_t(position / 8));
  const std::uint32_t two = words[std::size_t(position % 8 / 2)];
  return position % 2 == 0 ? two % 65536 : two / 65536;
}

// In double, from the two neighbours: the share of the way that is behind x.
BFloat16 rounded(float x, unsigned random) {
  BFloat16 low;
  low.bits = std::uint16_t(std::bit_cast<std::uint32_t>(x) / 65536);
  if (!std::isfinite(x)) return low;
  BFloat16 high;
  high.bits = std::uint16_t(low.bits + 1);
  const double from = float(low);
  const double to = std::isfinite(float(high)) ? double(float(high))
                                               : std::copysign(0x1p128, x);
  const double share = (double(x) - from) / (to - from);
  return share + random / 65536.0 >= 1 ? high : low;
}

Tensor rounded(const Tensor& whole, std::uint64_t key, int step) {
  Tensor result = empty(whole.shape(), DType::bfloat16);
  const Tensor from = whole.contiguous();
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    result.data<BFloat16>()[i] =
        rounded(from.data<float>()[i], drawn(key, step, i));
  }
  return result;
}

// A float32 optimizer, whose parameters are rounded by hand after each step.
template <class Kind>
struct ByHand {
  template <class Options>
  ByHand(const std::vector<Tensor>& params, const Options& options,
         std::uint32_t of = 0)
      : seed(of), wide(in_float32(params)), optimizer(wide, options) {}

  void step(const std::vector<Tensor>& params) {
    take_gradients(wide, params);
    optimizer.step();
    ++steps;
    narrow.clear();
    for (std::size_t i = 0; i < wide.size(); ++i) {
      narrow.push_back(rounded(wide[i], key_of(seed, i), steps));
      wide[i].copy_(narrow[i]);
    }
  }

  std::uint32_t seed;
  int steps = 0;
  std::vector<Tensor> wide;
  std::vector<Tensor> narrow;
  Kind optimizer;
};

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copied;
  for (const Tensor& each : tensors) {
    copied.push_back(each.to(cpu_device).contiguous());
  }
  return copied;
}

// Calls use.operator()<Kind>(options) for each optimizer, and for one of a user's.
template <class Use>
void for_each_kind(Use use) {
  optimizer_rules::for_each_kind(use);
  use.template operator()<Adam>(AdamOptions{.amsgrad = true});
  use.template operator()<Lion>(LionOptions{.lr = 0.01});
}

}  // namespace

TEST_CASE("every optimizer moves a float32 and rounds it as by hand") {
  for_each_kind([&]<class Kind>(auto options) {
    const std::vector<Tensor> eagerly = make_params(shapes, 3, DType::bfloat16);
    const std::vector<Tensor> compiled = copies(eagerly);
    Kind eager(eagerly, options);
    Kind fused(compiled, options);
    ByHand<Kind> oracle(eagerly, options, 7);
    CAPTURE(fused.name());
    eager.use_stochastic_rounding(true, 7);
    fused.use_stochastic_rounding(true, 7);
    auto step = compile([&] { fused.step(); }, {.fullgraph = true});
    for (int n = 0; n < 5; ++n) {
      set_gradients(eagerly, n);
      set_gradients(compiled, n);
      eager.step();
      step();
      oracle.step(eagerly);
      CHECK(same_bits(eagerly, oracle.narrow));
      CHECK(same_bits(compiled, oracle.narrow));
    }
    CHECK(step.counters().graph_breaks == 0);
    CHECK(step.counters().launches == 5);
    CHECK(step.counters().compilations == 1);
  });
}

TEST_CASE("every backend, any number of threads: the same bits") {
  const auto first = make_params(shapes, 3, DType::bfloat16);
  ByHand<Adam> oracle(first, AdamOptions{});
  for (int n = 0; n < 3; ++n) {
    set_gradients(first, n);
    oracle.step(first);
  }
  for (const int threads : {1, 2, 3, 7}) {
    const testing::Threads chosen(threads);
    for (const Backend backend :
         {Backend::compiled, Backend::interpreted, Backend::simulated}) {
      const auto params = make_params(shapes, 3, DType::bfloat16);
      Adam adam(params);
      adam.use_stochastic_rounding();
      auto step = compile([&] { adam.step(); },
                          {.fullgraph = true, .backend = backend});
      for (int n = 0; n < 3; ++n) {
        set_gradients(params, n);
        step();
      }
      CHECK(step.counters().launches == 3);
      CHECK(same_bits(params, oracle.narrow));
    }
  }
}

TEST_CASE("a step moves 22 bytes an element, and with states in 8 bits 10") {
  for (const Device& device : {cpu_device, tested_device()}) {
    for (const bool coded : {false, true}) {
      Tensor param = full({9000}, 0.5, DType::bfloat16).to(device);
      Adam adam({param}, {.lr = 0.01});
      adam.use_stochastic_rounding();
      adam.use_8bit_states(coded);
      auto step = compile([&] { adam.step(); }, {.fullgraph = true});
      for (int n = 0; n < 2; ++n) {
        set_gradients({param}, n);
        step();
      }
      // A gradient, the parameter twice, and two states; the step count twice,
      // and the key.
      const std::int64_t states = coded ? 9000 * 4 + 36 * 16 : 9000 * 16;
      CHECK(step.counters().bytes_moved == 2 * (9000 * (2 + 4) + states + 24));
      CHECK(step.counters().launches == 2);
      const OptimizerMemory memory = adam.memory();
      CHECK(memory.params == 2 * 9000);
      CHECK(memory.states == 9000 * (coded ? 2 : 8) + 16);
    }
  }
}

TEST_CASE("with states in 8 bits: all backends, any threads, tails") {
  const std::vector<Shape> large = {{256}, {3, 1000}, {70001}, {255}, {}, {0}};
  for_each_kind([&]<class Kind>(auto options) {
    const auto params = make_params(large, 3, DType::bfloat16);
    const auto interpreted = copies(params);
    const auto simulated = copies(params);
    Kind one(params, options);
    Kind other(interpreted, options);
    Kind third(simulated, options);
    // States are those of a float32 parameter with the same values.
    const auto wide = in_float32(params);
    Kind oracle(wide, options);
    CAPTURE(one.name());
    for (Kind* const each : {&one, &other, &third, &oracle}) {
      each->use_stochastic_rounding(true, 3);
      each->use_8bit_states(true, 256);
    }
    auto step = compile([&] { one.step(); }, {.fullgraph = true});
    auto on_gpu = compile([&] { third.step(); },
                          {.fullgraph = true, .backend = Backend::simulated});
    for (int n = 0; n < 3; ++n) {
      for (const auto* all : {&params, &interpreted, &simulated}) {
        set_gradients(*all, n);
      }
      take_gradients(wide, params);
      const testing::Threads chosen(n + 1);
      step();
      other.step();
      on_gpu();
      oracle.step();
      std::vector<Tensor> wanted;
      for (std::size_t i = 0; i < wide.size(); ++i) {
        wanted.push_back(rounded(wide[i], key_of(3, i), n + 1));
        Tensor(wide[i]).copy_(wanted[i]);
      }
      CHECK(same_bits(params, wanted));
      CHECK(same_bits(interpreted, wanted));
      CHECK(same_bits(simulated, wanted));
    }
  });
}

TEST_CASE("tensors in any order draw for where their elements stand") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    const auto dense =
        make_params({{40, 30}, {200, 2}, {9, 8, 33}}, 3, DType::bfloat16);
    const std::vector<Tensor> params = {dense[0].t(), dense[1].narrow(1, 0, 1),
                                        dense[2].narrow(2, 1, 31)};
    std::vector<Tensor> rows;
    for (const Tensor& each : params) rows.push_back(each.contiguous());
    Adam adam(params);
    ByHand<Adam> oracle(rows, AdamOptions{});
    adam.use_stochastic_rounding();
    auto step = compile([&] { adam.step(); }, {.backend = backend});
    for (int n = 0; n < 3; ++n) {
      set_gradients(params, n);
      step();
      oracle.step(params);
      for (std::size_t p = 0; p < params.size(); ++p) {
        CAPTURE(p);
        CAPTURE(int(backend));
        CHECK(same_bits(on_host(params)[p], oracle.narrow[p]));
      }
    }
  }
}

TEST_CASE("what bfloat16 holds stays, and what is no number") {
  for (const double value :
       {1.0, -0.0, 0x1p-133, 0x1.fep127, infinity, -infinity, std::nan("")}) {
    CAPTURE(value);
    Tensor param = full({1000}, value, DType::bfloat16);
    param.set_grad(zeros({1000}, DType::bfloat16));
    const Tensor before = param.clone();
    SGD sgd({param}, {.lr = 1.0});
    sgd.use_stochastic_rounding();
    auto step = compile([&] { sgd.step(); });
    step();
    step();
    CHECK(same_bits(param, before));
  }
}

TEST_CASE("behind the largest number, infinity is the next") {
  const double last = 0x1.fep127;
  Tensor param = full({4096}, last, DType::bfloat16);
  param.set_grad(full({4096}, -0x1p118, DType::bfloat16));
  SGD sgd({param}, {.lr = 1.0});  // by a quarter of the last digit
  sgd.use_stochastic_rounding();
  sgd.step();
  int up = 0;
  for (const double x : param.to_vector()) {
    CHECK((x == last || x == infinity));
    up += x == infinity ? 1 : 0;
  }
  CHECK(up > 4096 * 0.2);
  CHECK(up < 4096 * 0.3);
}

// Each of n numbers is one of two neighbours `digit` apart, so the standard
// deviation of their mean is at most digit / 2 / sqrt(n). Seeds are given, so this
// is the same every time.
TEST_CASE("steps that are too small for bfloat16 add up") {
  constexpr std::int64_t n = 100000;
  constexpr double digit = 0x1p-7;  // of bfloat16 behind one
  constexpr double update = 0x1p-12;
  Tensor param = full({n}, 1, DType::bfloat16);
  Tensor plain = full({n}, 1, DType::bfloat16);
  SGD sgd({param}, {.lr = 1.0});
  SGD nearest({plain}, {.lr = 1.0});
  sgd.use_stochastic_rounding();
  auto step = compile([&] { sgd.step(); });
  for (int steps = 1; steps <= 64; ++steps) {
    param.set_grad(full({n}, -update, DType::bfloat16));
    plain.set_grad(full({n}, -update, DType::bfloat16));
    step();
    nearest.step();
    double sum = 0;
    for (const double x : param.to_vector()) sum += x;
    const double deviation =
        std::sqrt(double(steps)) * digit / 2 / std::sqrt(double(n));
    CHECK(std::abs(sum / n - (1 + steps * update)) < 5 * deviation);
  }
  CHECK(plain.to_vector() == std::vector<double>(n, 1));
}

TEST_CASE("seeds, parameters, steps and elements have bits of their own") {
  const auto moved = [](std::uint32_t seed, int steps) {
    std::vector<Tensor> params = {full({64}, 1, DType::bfloat16),
                                  full({64}, 1, DType::bfloat16)};
    SGD sgd(params, {.lr = 1.0});
    sgd.use_stochastic_rounding(true, seed);
    for (int n = 0; n < steps; ++n) {
      for (Tensor& each : params) {
        each.fill_(1);
        each.set_grad(full({64}, -0x1p-8, DType::bfloat16));
      }
      sgd.step();
    }
    return params;
  };
  const auto one = moved(1, 1);
  CHECK(same_bits(one, moved(1, 1)));
  CHECK_FALSE(same_bits(one[0], one[1]));
  for (const auto& other : {moved(2, 1), moved(1, 2)}) {
    CHECK_FALSE(same_bits(one[0], other[0]));
    CHECK_FALSE(same_bits(one[1], other[1]));
  }
  const auto values = one[0].to_vector();
  CHECK(std::vector<double>(values.begin(), values.begin() + 32) !=
        std::vector<double>(values.begin() + 32, values.end()));
}

TEST_CASE("bits belong to a parameter, wherever it is and whoever else steps") {
  const auto params = make_params({{40}, {300}, {5, 5}}, 3, DType::bfloat16);
  const auto others = copies(params);
  Adam whole(params);
  whole.use_stochastic_rounding(true, 5);
  Adam moving(others);
  moving.use_stochastic_rounding(true, 5);
  for (int n = 0; n < 6; ++n) {
    set_gradients(params, n);
    set_gradients(others, n);
    if (n == 2) {
      // In groups of their own, in another order.
      std::vector<Adam::Group> groups;
      for (const std::size_t p : {2, 0, 1}) {
        groups.push_back(Adam::Group({others[p]}, AdamOptions{}));
        groups.back().stochastic_rounding = true;
      }
      moving.param_groups = groups;
    }
    if (n == 4) {
      // One of them skips a step.
      Tensor(params[0]).set_grad(Tensor());
      Tensor(others[0]).set_grad(Tensor());
    }
    whole.step();
    moving.step();
    CHECK(same_bits(params, others));
  }
}

TEST_CASE("groups whose tensors have the same sizes draw apart") {
  const auto params = make_params({{300}, {300}, {300}}, 3, DType::bfloat16);
  Adam adam(std::vector<Adam::Group>{{{params[0]}}, {{params[1]}}});
  adam.use_stochastic_rounding();
  Adam other({params[2]});
  other.use_stochastic_rounding(true, 9);
  ByHand<Adam> oracle({params[0], params[1]}, AdamOptions{});
  ByHand<Adam> oracle_of_other({params[2]}, AdamOptions{}, 9);
  auto step = compile(
      [&] {
        adam.step();
        other.step();
      },
      {.fullgraph = true});
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    step();
    oracle.step({params[0], params[1]});
    oracle_of_other.step({params[2]});
    CHECK(same_bits({params[0], params[1]}, oracle.narrow));
    CHECK(same_bits({params[2]}, oracle_of_other.narrow));
  }
  CHECK(step.counters().launches == 3);
}

TEST_CASE("several steps of one compiled function") {
  const auto params = make_params(shapes, 3, DType::bfloat16);
  const auto eagerly = copies(params);
  Adam adam(params);
  Adam eager(eagerly);
  adam.use_stochastic_rounding();
  eager.use_stochastic_rounding();
  auto twice = compile([&] {
    adam.step();
    adam.step();
  });
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    set_gradients(eagerly, n);
    twice();
    eager.step();
    eager.step();
    CHECK(same_bits(params, eagerly));
  }
}

TEST_CASE("a step that is skipped draws for the next one again") {
  check_skipped_steps(shapes,
                      [](Adam& adam) { adam.use_stochastic_rounding(); });
}

TEST_CASE("only parameters in bfloat16, and masters go before it") {
  const std::vector<Tensor> params = {full({3}, 1, DType::bfloat16),
                                      full({3}, 1, DType::float32),
                                      full({3}, 1, DType::bfloat16)};
  AdamW adamw(std::vector<AdamW::Group>{{{params[0], params[1]}}});
  adamw.group(0).stochastic_rounding = true;
  adamw.add_param_group(
      {params[2]}, {{"split_masters", true}, {"stochastic_rounding", true}});
  set_gradients(adamw.parameters(), 0);
  adamw.step();
  CHECK(adamw.updates_in_float32());
  CHECK(adamw.state(params[0], "rounding_key").item() == double(key_of(0, 0)));
  CHECK(adamw.state(params[0], "exp_avg_sq").dtype() == DType::float32);
  CHECK_FALSE(adamw.state(params[1], "rounding_key").defined());
  CHECK_FALSE(adamw.state(params[2], "rounding_key").defined());
  CHECK(adamw.state(params[2], "low_half").dtype() == DType::int16);

  // Switched off, the key is gone; what has masters has none.
  adamw.group(1).split_masters = false;
  adamw.group(0).stochastic_rounding = false;
  adamw.group(0).split_masters = true;
  adamw.step();
  CHECK_FALSE(adamw.state(params[0], "rounding_key").defined());
  CHECK(adamw.state(params[2], "rounding_key").item() == double(key_of(0, 2)));
  CHECK_FALSE(adamw.state(params[2], "low_half").defined());

  Tensor late = full({2}, 1, DType::float16);
  adamw.add_param_group({late}, {{"stochastic_rounding", true}});
  late.set_grad(full({2}, 1, DType::float16));
  CHECK(message_of<Error>([&] { adamw.step(); }) ==
        "stochastic_rounding: a parameter with shape [2] is in float16, but "
        "only bfloat16 is rounded that way; put it in a group with "
        "master_weights");
  CHECK(adamw.state(params[2], "step").item() == 2);
  CHECK_FALSE(adamw.state(late, "exp_avg").defined());
}

TEST_CASE("states in 16 bits that are there already are refused") {
  Tensor param = full({3}, 1, DType::bfloat16);
  param.set_grad(full({3}, 1, DType::bfloat16));
  Adam adam({param});
  adam.step();
  adam.use_stochastic_rounding();
  CHECK(contains(message_of<Error>([&] { adam.step(); }),
                 "switch them on before the first step"));
}

TEST_CASE("it goes on from a state dict and from a checkpoint") {
  const jit_testing::TempDir folder;
  const std::string file = folder.path() + "/run.safetensors";
  const auto make = [](std::uint64_t seed) {
    return make_params({{5, 3}, {4000}}, seed, DType::bfloat16);
  };
  const auto params = make(1);
  Adam one(params, {.lr = 0.01});
  one.use_stochastic_rounding(true, 11);
  for (int n = 0; n < 3; ++n) {
    set_gradients(params, n);
    one.step();
  }
  save_checkpoint(file, one);
  const auto loaded_params = copies(params);
  Adam from_dict(loaded_params, {.lr = 0.01});
  from_dict.load_state_dict(one.state_dict());
  CHECK(from_dict.group(0).stochastic_rounding);
  const auto resumed_params = make(2);
  Adam resumed(resumed_params, {.lr = 0.01});
  CHECK(contains(message_of<Error>([&] { load_checkpoint(file, resumed); }),
                 "\"param_groups.0.stochastic_rounding\" is true in the file, "
                 "but false here"));
  resumed.use_stochastic_rounding(true, 12);  // keys are those of the file
  load_checkpoint(file, resumed);
  for (Adam* const each : {&one, &from_dict, &resumed}) {
    for (int n = 3; n < 6; ++n) {
      set_gradients(each->parameters(), n);
      each->step();
    }
  }
  CHECK(same_bits(resumed_params, params));
  CHECK(same_bits(loaded_params, params));
}

TEST_CASE("places, steps and seeds beyond 32 bits") {
  constexpr std::int64_t first = (1LL << 40) + 3;
  constexpr std::int64_t step_before = (1LL << 41) + 5;
  constexpr std::uint32_t seed = 0xffffffffU;
  const Tensor start = make_params({{1001}}, 3, DType::bfloat16)[0];
  const Tensor gradient = make_params({{1001}}, 4, DType::bfloat16)[0];

  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    Tensor param = zeros({1001}, DType::bfloat16);
    param.set_grad(zeros({1001}, DType::bfloat16));
    SGD sgd({param}, {.lr = 0.01});
    sgd.use_stochastic_rounding(true, seed);
    sgd.set_part(param, {1ULL << 33, first});
    auto step = compile([&] { sgd.step(); }, {.backend = backend});
    step();
    param.copy_(start);
    param.set_grad(gradient.clone());
    Tensor count = sgd.state(param, "step");
    count.fill_(double(step_before));
    step();
    const std::uint64_t key = key_of(seed, 1ULL << 33);
    const Tensor wide = start.to(DType::float32);
    const Tensor pull = gradient.to(DType::float32);
    for (std::int64_t i = 0; i < 1001; ++i) {
      const float x =
          wide.data<float>()[i] + pull.data<float>()[i] * float(-0.01);
      CHECK(param.data<BFloat16>()[i].bits ==
            rounded(x, drawn(key, step_before + 1, first + i)).bits);
    }
  }
}

TEST_CASE("a part of a parameter draws as the whole does") {
  const auto whole = make_params({{30000}, {500}}, 3, DType::bfloat16);
  std::vector<Tensor> parts;
  const std::vector<std::int64_t> cuts = {0, 8192, 16384, 29000, 29003, 30000};
  const Tensor copy = whole[0].clone();
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    parts.push_back(copy.narrow(0, cuts[k], cuts[k + 1] - cuts[k]));
  }
  Adam one(whole);
  Adam other(parts);
  one.use_stochastic_rounding(true, 2);
  other.use_stochastic_rounding(true, 2);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    other.set_part(parts[k], {0, cuts[k]});
  }
  auto step = compile([&] { other.step(); }, {.fullgraph = true});
  for (int n = 0; n < 3; ++n) {
    set_gradients(whole, n);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      parts[k].set_grad(
          whole[0].grad().narrow(0, cuts[k], cuts[k + 1] - cuts[k]).clone());
    }
    one.step();
    step();
    CHECK(same_bits(copy, whole[0]));
  }
}
