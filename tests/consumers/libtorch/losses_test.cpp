// Losses are those of LibTorch's own optimizers, as far as float32 can tell.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "both.h"
#include "model.h"

namespace {

constexpr int steps = 300;
constexpr int orders = 4;

template <class Optimizer, class Options>
std::vector<double> losses_of(torch::Dtype dtype, int order,
                              const Options& options) {
  auto model = make_model(dtype);
  const auto data = make_data(dtype, order);
  Optimizer optimizer(model->parameters(), options);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(train(model, data, optimizer));
  }
  return losses;
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  double found = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    found = std::max(found, std::abs(a[i] - b[i]));
  }
  return found;
}

// How far losses are from `exact` in the worst of several orders of the batch: a
// run without an error of its own differs by rounding alone, which training
// amplifies.
template <class Optimizer, class Options>
double noise_of(torch::Dtype dtype, const std::vector<double>& exact,
                const Options& options) {
  double found = 0;
  for (int order = 1; order <= orders; ++order) {
    found = std::max(
        found,
        farthest(losses_of<Optimizer>(dtype, 13 * order, options), exact));
  }
  return found;
}

}  // namespace

TEST_CASE_TEMPLATE("losses differ by no more than rounding", Kind, EVERY_ONE) {
  using Theirs = typename Kind::Theirs;
  const auto options = Kind::options();
  const auto exact = losses_of<Theirs>(torch::kDouble, 0, options);
  REQUIRE(exact.back() < exact.front() / 2);
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const double theirs = noise_of<Theirs>(dtype, exact, options);
    const double ours = noise_of<typename Kind::Ours>(dtype, exact, options);
    CAPTURE(theirs);
    CHECK(theirs > 0);
    CHECK(ours <= 2 * theirs);
  }
}
