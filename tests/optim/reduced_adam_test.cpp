// Adam on 16-bit parameters, against a loop that rounds as often as torch's
// list operations do; and what a step of it costs.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/cpu/traffic.h"
#include "fusebook/device/allocator.h"
#include "fusebook/optim/adam.h"
#include "support/reduced.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

constexpr int steps = 4;
constexpr double lr = 0.01;
constexpr double beta1 = 0.9;
constexpr double beta2 = 0.999;
constexpr double eps = 1e-8;

// One parameter as the seven list operations leave it: floats inside an
// operation, 16 bits between two. Numbers are doubles until they meet one.
struct Oracle {
  explicit Oracle(const Tensor& tensor)
      : dtype(tensor.dtype()),
        param(tensor.to_vector()),
        grad(tensor.grad().to_vector()),
        mean(param.size()),
        square(param.size()) {}

  float rounded(float value) const {
    return float(reduced::round(dtype, double(value)));
  }

  void step(int t) {
    const auto step_size = float(-(lr / (1 - std::pow(beta1, t))));
    const auto correction = float(std::sqrt(1 - std::pow(beta2, t)));
    const auto weight = float(1 - beta1);
    for (std::size_t i = 0; i < param.size(); ++i) {
      const auto g = float(grad[i]);
      const auto m = float(mean[i]);
      const float next = rounded(m + weight * (g - m));
      const float decayed = rounded(float(square[i]) * float(beta2));
      const float v = rounded(decayed + float(1 - beta2) * g * g);
      const float root = rounded(rounded(std::sqrt(v)) / correction);
      const float denominator = rounded(root + float(eps));
      mean[i] = double(next);
      square[i] = double(v);
      param[i] =
          double(rounded(float(param[i]) + step_size * next / denominator));
    }
  }

  DType dtype;
  std::vector<double> param;
  std::vector<double> grad;
  std::vector<double> mean;
  std::vector<double> square;
};

std::vector<Shape> shapes() {
  return {{1}, {511}, {512}, {513}, {3, 500}, {}, {70001}};
}

void check_against_oracle(const Adam& adam, const std::vector<Tensor>& params,
                          const std::vector<Tensor>& start) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    Oracle oracle(start[i]);
    for (int t = 1; t <= steps; ++t) oracle.step(t);
    CHECK(params[i].to_vector() == oracle.param);
    CHECK(adam.state(params[i], "exp_avg").to_vector() == oracle.mean);
    CHECK(adam.state(params[i], "exp_avg_sq").to_vector() == oracle.square);
    CHECK(adam.state(params[i], "exp_avg").dtype() == params[i].dtype());
    CHECK(adam.state(params[i], "step").dtype() == DType::float64);
  }
}

}  // namespace

TEST_CASE("every operation rounds: eager, interpreted, compiled") {
  for (const DType dtype : reduced::types) {
    CAPTURE(name_of(dtype));
    const auto start = make_params(shapes(), 3, dtype);
    const auto eager = copies(start);
    Adam eager_adam(eager, {.lr = lr});
    for (int t = 0; t < steps; ++t) eager_adam.step();
    check_against_oracle(eager_adam, eager, start);
    for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
      const auto params = copies(start);
      Adam adam(params, {.lr = lr});
      auto step = compile([&] { adam.step(); },
                          {.fullgraph = true, .backend = backend});
      for (int t = 0; t < steps; ++t) step();
      check_against_oracle(adam, params, start);
      CHECK(step.counters().launches == steps);
      CHECK(step.counters().compilations == 1);
    }
  }
}

TEST_CASE("a step moves seven arrays of two bytes, and asks for no memory") {
  for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
    const auto params = make_params(shapes(), 3, DType::bfloat16);
    Adam adam(params);
    auto step =
        compile([&] { adam.step(); }, {.fullgraph = true, .backend = backend});
    step();
    const auto allocations = [] {
      const AllocatorStatistics now = allocator_statistics();
      return now.system_allocations + now.cache_hits;
    };
    const auto before = allocations();
    const auto bytes = step.counters().bytes_moved;
    step();
    CHECK(allocations() == before);
    // And the step count of each parameter, a double that is read and written.
    CHECK(step.counters().bytes_moved - bytes ==
          7 * 2 * total_numel(params) + 2 * 8 * std::int64_t(params.size()));
  }
}

TEST_CASE("each element is loaded and stored once") {
  const auto params = make_params(shapes(), 3, DType::float16);
  Adam adam(params);
  auto step = compile([&] { adam.step(); }, {.backend = Backend::interpreted});
  step();
  const TrafficCounter counter;
  step();
  long long loads = 0;
  long long stores = 0;
  for (const auto& [address, moved] : counter.tensors()) {
    loads += moved.loads;
    stores += moved.stores;
  }
  CHECK(loads == 4 * total_numel(params));
  CHECK(stores == 3 * total_numel(params));
}

TEST_CASE("float32 and 16-bit parameters are one launch") {
  auto params = make_params({{300}, {5, 7}}, 3);
  for (const DType dtype : reduced::types) {
    for (const Tensor& more : make_params({{300}, {4}}, 5, dtype)) {
      params.push_back(more);
    }
  }
  const auto eager = copies(params);
  Adam adam(params, {.lr = tensor(0.01)});
  Adam eager_adam(eager, {.lr = tensor(0.01)});
  auto step = compile([&] { adam.step(); });
  for (int t = 0; t < steps; ++t) {
    step();
    eager_adam.step();
  }
  CHECK(step.counters().launches == steps);
  CHECK(step.counters().compilations == 1);
  CHECK(bitwise_equal(params, eager));
}
