// Training as everybody writes it: a classifier that learns, new gradients in
// every step, an optimizer that is compiled.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/nn/loss.h"
#include "fusebook/nn/model.h"
#include "fusebook/optim/all.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/random.h"

using namespace fuse;

namespace {

constexpr std::int64_t classes = 3;

/// Points of three spiral arms, which no straight lines can part.
struct Spirals {
  Tensor points;
  std::vector<std::int64_t> arms;
};

Spirals spirals(std::int64_t count, std::uint64_t seed) {
  Generator gen(seed);
  const Tensor draws = rand({count, 2}, gen);
  const std::vector<double> drawn = draws.to_vector();
  Spirals all = {empty({count, 2}, DType::float32, cpu_device), {}};
  float* const points = all.points.data<float>();
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    const auto arm = std::int64_t(i) % classes;
    const double radius = drawn[2 * i];
    const double angle =
        4 * radius + 2.0943951 * double(arm) + 0.3 * (drawn[2 * i + 1] - 0.5);
    points[2 * i] = float(radius * std::cos(angle));
    points[2 * i + 1] = float(radius * std::sin(angle));
    all.arms.push_back(arm);
  }
  return all;
}

double accuracy(const Sequential& model, const Spirals& data) {
  const NoGradGuard guard;
  model.eval();
  const std::vector<double> scores = model(data.points).to_vector();
  model.train();
  std::size_t right = 0;
  for (std::size_t i = 0; i < data.arms.size(); ++i) {
    const auto row = scores.begin() + std::ptrdiff_t(i) * classes;
    right += std::max_element(row, row + classes) - row == data.arms[i];
  }
  return double(right) / double(data.arms.size());
}

}  // namespace

TEST_CASE("a classifier learns, with one launch a step and one kernel") {
  Generator gen(7);
  const Sequential model({Linear(2, 64, gen), ReLU(), Dropout(0.1, gen),
                          Linear(64, 64, gen), ReLU(),
                          Linear(64, classes, gen)});
  const Spirals examples = spirals(300, 1);
  const Spirals unseen = spirals(300, 2);
  CHECK(accuracy(model, unseen) < 0.6);
  Adam opt(model.parameters(), {.lr = tensor(0.01)});
  auto step = compile([&] { opt.step(); });
  constexpr int steps = 150;
  double first = 0;
  double last = 0;
  for (int n = 0; n < steps; ++n) {
    opt.zero_grad();
    CHECK_FALSE(model.parameters()[0].grad().defined());
    const Tensor loss = cross_entropy(model(examples.points), examples.arms);
    loss.backward();
    step();
    last = loss.item();
    if (n == 0) first = last;
  }
  CHECK(first > 0.9);  // log(3) is what guessing costs
  CHECK(last < 0.3);
  CHECK(accuracy(model, unseen) > 0.9);
  CHECK(step.counters().launches == steps);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().recompiles == 0);
  CHECK(step.counters().graph_breaks == 0);
}
