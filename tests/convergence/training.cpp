#include "convergence/training.h"

#include <array>

#include "fusebook/compile/compile.h"
#include "fusebook/nn/functional.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "support/lion.h"

namespace fuse::convergence {
namespace {

constexpr std::int64_t hidden = 64;
constexpr std::int64_t batch = 32;
// All matrices have more elements than this, all biases fewer.
constexpr std::int64_t min_8bit_size = 256;

using Weights = std::vector<Tensor>;

Weights make_weights(Generator& gen) {
  Weights weights;
  for (const Linear& layer :
       {Linear(context * letters, hidden, gen), Linear(hidden, letters, gen)}) {
    for (const Tensor& each : layer.parameters()) {
      weights.push_back(each.detach());
    }
  }
  return weights;
}

Tensor loss_of(const Weights& weights, const Examples& examples) {
  const auto wide = [&](std::size_t i) { return weights[i].to(float32); };
  const Tensor inside = tanh(linear(examples.input, wide(0), wide(1)));
  return cross_entropy(linear(inside, wide(2), wide(3)), examples.next);
}

Examples next_batch(const Text& text, Generator& gen) {
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < batch; ++i) {
    begins.push_back(text.seen()[gen.bits() % text.seen().size()]);
  }
  return text.at(begins);
}

template <class Kind, auto options_of>
std::unique_ptr<Optimizer> make(const Weights& weights) {
  return std::make_unique<Kind>(weights, options_of());
}

}  // namespace

std::span<const StorageKind> storages() {
  static constexpr std::array<StorageKind, 6> all = {
      {{"float32"},
       {.name = "8-bit states", .coded = true},
       {.name = "bfloat16, masters", .weights = bfloat16, .masters = true},
       {.name = "bfloat16, split", .weights = bfloat16, .split = true},
       {.name = "split, 8-bit states",
        .weights = bfloat16,
        .split = true,
        .coded = true},
       {.name = "stochastic, 8-bit states",
        .weights = bfloat16,
        .coded = true,
        .stochastic = true}}};
  return all;
}

std::span<const Rule> rules() {
  constexpr auto adam = [] { return AdamOptions{.lr = 2e-3}; };
  constexpr auto adamw = [] { return AdamWOptions{.lr = 2e-3}; };
  constexpr auto lion = [] { return LionOptions{.lr = 3e-4}; };
  constexpr auto sgd = [] { return SGDOptions{.lr = 0.1, .momentum = 0.9}; };
  constexpr auto rmsprop = [] { return RMSpropOptions{.lr = 1e-3}; };
  static constexpr std::array<Rule, 5> all = {
      {{"Adam", make<Adam, adam>},
       {"AdamW", make<AdamW, adamw>},
       {"Lion", make<Lion, lion>},
       {"SGD", make<SGD, sgd>},
       {"RMSprop", make<RMSprop, rmsprop>}}};
  return all;
}

Outcome train(const Text& text, const Rule& rule, const StorageKind& storage,
              int seed, int steps, const CompileOptions& options) {
  Generator gen(std::uint64_t(seed) + 1);
  Weights weights = make_weights(gen);
  for (Tensor& each : weights) {
    each = each.to(storage.weights);
    each.requires_grad_();
  }
  const std::unique_ptr<Optimizer> optimizer = rule.make(weights);
  optimizer->use_master_weights(storage.masters);
  optimizer->use_split_masters(storage.split);
  optimizer->use_stochastic_rounding(storage.stochastic, std::uint32_t(seed));
  optimizer->use_8bit_states(storage.coded, min_8bit_size);
  auto step = compile([&] { optimizer->step(); }, options);
  for (int n = 0; n < steps; ++n) {
    optimizer->zero_grad();
    loss_of(weights, next_batch(text, gen)).backward();
    step();
  }
  return {loss_of(weights, text.at(text.unseen())).item(),
          step.counters().launches, optimizer->memory()};
}

std::int64_t parameter_count() {
  Generator gen(0);
  std::int64_t count = 0;
  for (const Tensor& each : make_weights(gen)) count += each.numel();
  return count;
}

}  // namespace fuse::convergence
