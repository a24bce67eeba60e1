// Optimizers at the ends of the range of numbers, beside what torch's make of
// the same: an operation in another order overflows or vanishes elsewhere.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/optim/all.h"
#include "fusebook/tensor/tensor.h"

using namespace fuse;

namespace {

using Settings = std::map<std::string, double>;

struct Element {
  double param;
  std::array<double, 2> grads;  // in turn
};

// What torch has after some steps, by the name of the state.
struct Result {
  std::string name;
  std::vector<double> values;
};

template <class Options>
Options options_of(const Settings& settings) {
  Options options;
  each_scalar(options, [&](const char* name, int index, Scalar& scalar) {
    const std::string key =
        name + (index < 0 ? std::string() : std::to_string(index));
    if (const auto found = settings.find(key); found != settings.end()) {
      scalar = found->second;
    }
  });
  const auto on = [&](const char* name) { return settings.contains(name); };
  options.maximize = on("maximize");
  if constexpr (requires { options.amsgrad; }) options.amsgrad = on("amsgrad");
  if constexpr (requires { options.nesterov; }) {
    options.nesterov = on("nesterov");
  }
  if constexpr (requires { options.centered; }) {
    options.centered = on("centered");
  }
  if constexpr (requires { options.decoupled_weight_decay; }) {
    options.decoupled_weight_decay = on("decoupled_weight_decay");
  }
  return options;
}

Tensor column(const std::vector<Element>& elements, DType dtype,
              double (*value)(const Element&)) {
  std::vector<double> values;
  for (const Element& each : elements) values.push_back(value(each));
  return tensor(values, dtype);
}

// Torch's numbers have four digits here. Those of 16 bits have two, and torch
// rounds a rate to 16 bits as well before it multiplies by it.
bool agrees(double value, double torch, DType dtype) {
  if (std::isnan(torch)) return std::isnan(value);
  if (std::isinf(torch)) return value == torch;
  const double smallest = dtype == DType::float64 ? 1e-323 : 1e-40;
  const double part = dtype == DType::bfloat16 ? 0.06 : 0.001;
  return std::abs(value - torch) <= part * std::abs(torch) + smallest;
}

template <class Kind, class Options>
void check(DType dtype, int steps, const Settings& settings,
           const std::vector<Element>& elements,
           const std::vector<Result>& results) {
  Tensor param =
      column(elements, dtype, [](const Element& x) { return x.param; });
  const std::array<Tensor, 2> grads = {
      column(elements, dtype, [](const Element& x) { return x.grads[0]; }),
      column(elements, dtype, [](const Element& x) { return x.grads[1]; })};
  Kind optimizer(std::vector<Tensor>{param}, options_of<Options>(settings));
  for (int t = 0; t < steps; ++t) {
    param.set_grad(grads[std::size_t(t % 2)]);
    optimizer.step();
  }
  for (const Result& result : results) {
    CAPTURE(result.name);
    const Tensor state =
        result.name == "param" ? param : optimizer.state(param, result.name);
    REQUIRE(state.defined());
    const std::vector<double> values = state.to_vector();
    REQUIRE(values.size() == result.values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i);
      CAPTURE(values[i]);
      CAPTURE(result.values[i]);
      CHECK(agrees(values[i], result.values[i], dtype));
    }
  }
}

}  // namespace

#define NARROW(...) const std::vector<Element> narrow = {__VA_ARGS__};
#define WIDE(...) const std::vector<Element> wide = {__VA_ARGS__};
#define UNPACK(...) __VA_ARGS__
#define CASE(kind, dtype, steps, settings, ...)                                \
  {                                                                            \
    CAPTURE(#kind " " #dtype " " #settings);                                   \
    check<kind, kind##Options>(DType::dtype, steps, UNPACK settings,           \
                               DType::dtype == DType::float64 ? wide : narrow, \
                               {__VA_ARGS__});                                 \
  }

TEST_CASE("numbers near the ends of the range come out as torch's do") {
#include "support/torch_optimizers.inc"
}

// Where a parameter had no gradient yet, torch's lists divide 0 by 0 without
// eps, and its loop over single tensors does not: neither does this.
TEST_CASE("RAdam without eps keeps a parameter whose gradient is zero") {
  Tensor param = tensor({1.0, -2.0});
  param.set_grad(zeros_like(param));
  RAdam optimizer(std::vector<Tensor>{param}, {.eps = 0.0});
  optimizer.step();
  CHECK(param.to_vector() == std::vector<double>{1, -2});
}
