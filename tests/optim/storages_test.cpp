// Whether training suffers from how weights and states are stored.
//
//   FUSEBOOK_STORAGES=1    of five optimizers, as the nightly tests have it: five
//                          seeds in float32 say how far apart equally good runs
//                          end, and the mean of the same seeds with another storage
//                          must lie among them; prints a table
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/nn/functional.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/random.h"
#include "support/lion.h"

using namespace fuse;

namespace {

constexpr int seeds = 5;
constexpr std::int64_t inputs = 16;
constexpr std::int64_t hidden = 64;
constexpr std::int64_t classes = 8;
constexpr std::int64_t examples = 64;

struct Kept {
  const char* name;
  DType weights;
  bool coded;
};
constexpr std::array<Kept, 4> storages = {{{"float32", float32, false},
                                           {"bfloat16", bfloat16, false},
                                           {"8 bits", float32, true},
                                           {"both", bfloat16, true}}};

using Weights = std::vector<Tensor>;
using Make = std::function<std::unique_ptr<Optimizer>(const Weights&)>;

Tensor output_of(const Weights& weights, const Tensor& input) {
  const Tensor inside = linear(input, weights[0].to(float32));
  return linear(tanh(inside), weights[1].to(float32));
}

Weights make_weights(Generator& gen) {
  return {Linear(inputs, hidden, gen).weight().detach(),
          Linear(hidden, classes, gen).weight().detach()};
}

Tensor make_input(std::int64_t count, Generator& gen) {
  return foreach_sub(TensorList{rand({count, inputs}, gen)}, 0.5)[0];
}

// Which of the classes a fixed network calls the likeliest, but one in eight is
// wrong.
std::vector<std::int64_t> labels_of(const Tensor& input, Generator& gen) {
  Generator fixed(77);
  const Weights teacher = make_weights(fixed);
  const Tensor scores = output_of(teacher, input);
  const Tensor noise = rand({2, input.shape()[0]}, gen);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < input.shape()[0]; ++i) {
    const float* const row = scores.data<float>() + i * classes;
    const float* const luck = noise.data<float>() + i;
    const auto likeliest = std::max_element(row, row + classes) - row;
    labels.push_back(luck[0] < 0.125F
                         ? std::int64_t(luck[input.shape()[0]] * classes)
                         : std::int64_t(likeliest));
  }
  return labels;
}

double final_loss(const Make& make, const Kept& storage, int seed, int steps) {
  Generator gen(std::uint64_t(seed) + 1);
  Weights weights = make_weights(gen);
  for (Tensor& each : weights) {
    each = each.to(storage.weights);
    each.requires_grad_();
  }
  const std::unique_ptr<Optimizer> optimizer = make(weights);
  optimizer->use_master_weights(storage.weights == bfloat16);
  optimizer->use_8bit_states(storage.coded, hidden * classes);
  auto step = compile([&] { optimizer->step(); });
  for (int n = 0; n < steps; ++n) {
    const Tensor input = make_input(examples, gen);
    const auto labels = labels_of(input, gen);
    optimizer->zero_grad();
    cross_entropy(output_of(weights, input), labels).backward();
    step();
  }
  CHECK(step.counters().launches == steps);
  Generator unseen(12345);
  const Tensor input = make_input(1024, unseen);
  return cross_entropy(output_of(weights, input), labels_of(input, unseen))
      .item();
}

template <class Kind, class Options>
Make maker(const Options& options) {
  return [options](const Weights& weights) {
    return std::make_unique<Kind>(weights, options);
  };
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         double(values.size());
}

std::vector<double> losses_of(const Make& make, const Kept& storage) {
  std::vector<double> losses;
  for (int seed = 0; seed < seeds; ++seed) {
    losses.push_back(final_loss(make, storage, seed, 2000));
  }
  return losses;
}

void compare(const char* name, const Make& make) {
  const auto wide = losses_of(make, storages[0]);
  const auto [low, high] = std::minmax_element(wide.begin(), wide.end());
  std::printf("%-8s float32 from %.4f to %.4f", name, *low, *high);
  for (std::size_t k = 1; k < storages.size(); ++k) {
    const double mean = mean_of(losses_of(make, storages[k]));
    std::printf(", %s %.4f", storages[k].name, mean);
    CAPTURE(name);
    CAPTURE(storages[k].name);
    CHECK(mean >= *low);
    CHECK(mean <= *high);
  }
  std::printf("\n");
}

const AdamOptions adam = {.lr = 2e-3};

}  // namespace

TEST_CASE("the first steps with fewer bytes are those of float32, nearly") {
  const Make make = maker<Adam>(adam);
  const double begin = final_loss(make, storages[0], 0, 0);
  const double wide = final_loss(make, storages[0], 0, 100);
  CHECK(wide < 0.95 * begin);
  for (const Kept& storage : storages) {
    CAPTURE(storage.name);
    const double loss = final_loss(make, storage, 0, 100);
    CHECK(std::abs(loss - wide) < 0.1 * (begin - wide));
  }
}

TEST_CASE("training with fewer bytes ends where float32 does" *
          doctest::skip(std::getenv("FUSEBOOK_STORAGES") == nullptr)) {
  compare("Adam", maker<Adam>(adam));
  compare("AdamW", maker<AdamW>(AdamWOptions{.lr = 2e-3}));
  compare("Lion", maker<Lion>(LionOptions{.lr = 3e-4}));
  compare("SGD", maker<SGD>(SGDOptions{.lr = 0.05, .momentum = 0.9}));
  compare("RMSprop", maker<RMSprop>(RMSpropOptions{.lr = 1e-3}));
}
