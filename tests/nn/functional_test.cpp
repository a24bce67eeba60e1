#include "fusebook/nn/functional.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/prelude/philox.h"
#include "fusebook/runtime/parallel.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "support/fake_cublas.h"
#include "support/gradients.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

using Values = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();
const Device sim = parse_device("cuda-sim");

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// A function of one number: the library's, its value and its slope by hand.
struct Curve {
  const char* name;
  std::function<Tensor(const Tensor&)> run;
  std::function<double(double)> value;
  std::function<double(double)> slope;
};

const std::vector<Curve> curves = {
    {"relu", [](const Tensor& x) { return relu(x); },
     [](double x) { return x > 0 ? x : 0; },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"tanh", [](const Tensor& x) { return tanh(x); },
     [](double x) { return std::tanh(x); },
     [](double x) { return 1 / (std::cosh(x) * std::cosh(x)); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); },
     [](double x) { return 1 / (1 + std::exp(-x)); },
     [](double x) {
       return std::exp(-x) / ((1 + std::exp(-x)) * (1 + std::exp(-x)));
     }},
    {"gelu", [](const Tensor& x) { return gelu(x); },
     [](double x) { return x * normal_cdf(x); },
     [](double x) {
       return normal_cdf(x) +
              x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
     }},
    {"gelu, tanh", [](const Tensor& x) { return gelu(x, Gelu::tanh); },
     [](double x) {
       const double u =
           std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
       return 0.5 * x * (1 + std::tanh(u));
     },
     [](double x) {
       const double root = std::sqrt(2 / std::numbers::pi);
       const double u = root * (x + 0.044715 * x * x * x);
       const double c = std::cosh(u);
       return 0.5 * (1 + std::tanh(u)) +
              0.5 * x / (c * c) * root * (1 + 3 * 0.044715 * x * x);
     }},
};

const Values points = {-6, -2.5, -1, -0.3, -1e-3, 1e-3, 0.25, 1, 3, 7};

void check_near(const Tensor& tensor, const Values& expected, double bound) {
  const Values values = tensor.to_vector();
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(values[i] - expected[i]) <=
          bound * std::max(1.0, std::abs(expected[i])));
  }
}

void check_curve(const Curve& curve, DType dtype, const Device& device) {
  const double bound = dtype == DType::float64 ? 1e-14 : 1e-6;
  const Tensor x = tensor(points, dtype).to(device).requires_grad_();
  const Tensor y = curve.run(x);
  CHECK(y.dtype() == dtype);
  CHECK(y.device() == device);
  y.sum().backward();
  Values values;
  Values slopes;
  for (const double at : x.detach().to_vector()) {
    values.push_back(curve.value(at));
    slopes.push_back(curve.slope(at));
  }
  check_near(y.detach(), values, bound);
  check_near(x.grad(), slopes, bound);
}

}  // namespace

TEST_CASE("activations have the published values and slopes") {
  for (const Curve& curve : curves) {
    CAPTURE(curve.name);
    for (const Device& device : {cpu_device, sim}) {
      check_curve(curve, DType::float32, device);
      check_curve(curve, DType::float64, device);
    }
    check_gradients([&](const auto& in) { return curve.run(in[0]); },
                    {signed_numbers({3, 5})}, 1e-6);
    check_gradients([&](const auto& in) { return curve.run(in[0].t()); },
                    {signed_numbers({3, 5})}, 1e-6);
  }
}

TEST_CASE("activations where they are not numbers, or large") {
  const Tensor x = tensor({NAN, inf, -inf, 0, -0.0});
  CHECK(std::isnan(relu(x).to_vector()[0]));
  CHECK(relu(x).to_vector()[1] == inf);
  CHECK(relu(x).to_vector()[2] == 0);
  CHECK(sigmoid(x).to_vector()[1] == 1);
  CHECK(sigmoid(x).to_vector()[2] == 0);
  const Tensor leaf = tensor({0.0, NAN, 1.0}).requires_grad_();
  relu(leaf).sum().backward();
  // As torch: nothing at 0, all of it at NaN.
  CHECK(leaf.grad().to_vector() == Values{0, 1, 1});
}

TEST_CASE("activations take 16 bits, and no elements") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (const Curve& curve : curves) {
      CAPTURE(curve.name);
      const Tensor x = tensor(points, dtype).requires_grad_();
      const Tensor y = curve.run(x);
      CHECK(y.dtype() == dtype);
      y.sum().backward();
      CHECK(x.grad().dtype() == dtype);
      const Values at = x.detach().to_vector();
      for (std::size_t i = 0; i < at.size(); ++i) {
        CHECK(std::abs(y.to_vector()[i] - curve.value(at[i])) < 0.06);
      }
    }
    // Small results are as exact as others.
    const double tail = gelu(tensor({-3.0}, dtype)).to_vector()[0];
    CHECK(tail == doctest::Approx(-3 * normal_cdf(-3)).epsilon(0.004));
  }
  for (const Curve& curve : curves) {
    const Tensor none = zeros({0, 3}).requires_grad_();
    curve.run(none).sum().backward();
    CHECK(none.grad().shape() == Shape{0, 3});
    CHECK(
        contains(message_of<Error>([&] { curve.run(Tensor()); }), "undefined"));
  }
}

TEST_CASE("sums, differences and products") {
  const std::vector<Tensor> both = {signed_numbers({2, 3}, 1),
                                    signed_numbers({2, 3}, 2)};
  const Values a = both[0].to_vector();
  const Values b = both[1].to_vector();
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(add(both[0], both[1]).to_vector()[i] == a[i] + b[i]);
    CHECK(sub(both[0], both[1]).to_vector()[i] == a[i] - b[i]);
    CHECK(mul(both[0], both[1]).to_vector()[i] == a[i] * b[i]);
  }
  check_gradients([](const auto& in) { return add(in[0], in[1]); }, both);
  check_gradients([](const auto& in) { return sub(in[0], in[1]); }, both);
  check_gradients([](const auto& in) { return mul(in[0], in[1]); }, both);
  // Their shapes broadcast, and gradients are summed over what was repeated.
  const std::vector<Tensor> rows = {signed_numbers({2, 3}, 1),
                                    signed_numbers({3}, 2)};
  const std::vector<Tensor> outer = {signed_numbers({2, 1}, 1),
                                     signed_numbers({1, 3}, 2)};
  for (const auto& pair : {rows, outer}) {
    const Values x = pair[0].to_vector();
    const Values y = pair[1].to_vector();
    CHECK(mul(pair[0], pair[1]).shape() == Shape{2, 3});
    for (std::size_t i = 0; i < 6; ++i) {
      const double left = x[x.size() == 6 ? i : i / 3];
      CHECK(add(pair[0], pair[1]).to_vector()[i] == left + y[i % 3]);
      CHECK(sub(pair[0], pair[1]).to_vector()[i] == left - y[i % 3]);
      CHECK(mul(pair[0], pair[1]).to_vector()[i] == left * y[i % 3]);
    }
    check_gradients([](const auto& in) { return add(in[0], in[1]); }, pair);
    check_gradients([](const auto& in) { return sub(in[0], in[1]); }, pair);
    check_gradients([](const auto& in) { return mul(in[0], in[1]); }, pair);
  }
  CHECK(message_of<Error>([] { add(zeros({2}), zeros({3})); }) ==
        "add: the tensors differ: shape [2], float32, on cpu, and shape [3], "
        "float32, on cpu");
  CHECK(contains(message_of<Error>([] { mul(zeros({2}), Tensor()); }),
                 "an undefined tensor"));
}

TEST_CASE("softmax and its logarithm by hand") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double bound = dtype == DType::float64 ? 1e-15 : 1e-7;
    const Tensor x = tensor({1, 2, 3, 1000, 1001, -1000}, dtype).view({2, 3});
    const double e = std::exp(1.0);
    const double sum = 1 + e + e * e;
    check_near(softmax(x, 1),
               {1 / sum, e / sum, e * e / sum, 1 / (1 + e), e / (1 + e), 0},
               bound);
    check_near(log_softmax(x, -1),
               {-std::log(sum), 1 - std::log(sum), 2 - std::log(sum),
                -std::log(1 + e), 1 - std::log(1 + e), -2000 - std::log(1 + e)},
               bound);
  }
  CHECK(softmax(tensor(3.0), 0).item() == 1);
  CHECK(log_softmax(tensor(3.0), -1).item() == 0);
  CHECK(softmax(zeros({0, 3}), 1).shape() == Shape{0, 3});
  CHECK(softmax(zeros({3, 0}), 1).shape() == Shape{3, 0});
}

TEST_CASE("softmax goes along any dimension, and back") {
  const Tensor x = signed_numbers({2, 3, 4});
  for (const std::int64_t dim : {0, 1, 2, -1, -3}) {
    CAPTURE(dim);
    const Tensor y = softmax(x, dim);
    const Tensor summed = y.transpose(dim, -1).contiguous();
    const Values values = summed.to_vector();
    const auto n = std::size_t(summed.shape().back());
    for (std::size_t row = 0; row < values.size(); row += n) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += values[row + i];
      CHECK(std::abs(sum - 1) < 1e-14);
    }
    check_gradients([&](const auto& in) { return softmax(in[0], dim); }, {x});
    check_gradients([&](const auto& in) { return log_softmax(in[0], dim); },
                    {x});
    check_gradients(
        [&](const auto& in) { return softmax(in[0].transpose(0, 2), dim); },
        {x});
  }
  CHECK(message_of<Error>([&] { softmax(x, 3); }) ==
        "softmax: a tensor of shape [2, 3, 4] has no dimension 3");
  CHECK(contains(
      message_of<Error>([&] { log_softmax(x.to(DType::bfloat16), 0); }),
      "log_softmax takes float32 and float64, not bfloat16"));
}

TEST_CASE("softmax has the same bits for any number of threads, and on a GPU") {
  const Tensor x = signed_numbers({500, 37}).to(DType::float32);
  set_thread_count(1);
  const Tensor once = log_softmax(x, 1);
  set_thread_count(5);
  CHECK(bitwise_equal(log_softmax(x, 1), once));
  set_thread_count(0);
  const Tensor there = log_softmax(x.to(sim), 1);
  CHECK(there.device() == sim);
  CHECK(bitwise_equal(there.cpu(), once));
}

TEST_CASE("products of matrices go back to both") {
  const Tensor a = signed_numbers({3, 4}, 1);
  const Tensor b = signed_numbers({4, 2}, 2);
  check_gradients([](const auto& in) { return matmul(in[0], in[1]); }, {a, b});
  check_gradients([](const auto& in) { return matmul(in[1].t(), in[0].t()); },
                  {a, b});
  check_gradients([](const auto& in) { return matmul(in[0], in[0].t()); }, {a});
  CHECK(contains(message_of<Error>([&] { matmul(a, a); }), "[3, 4]"));
  CHECK(contains(message_of<Error>([&] { matmul(a, Tensor()); }), "undefined"));
}

TEST_CASE("linear goes back to input, weight and bias") {
  const Tensor weight = signed_numbers({5, 3}, 1);
  const Tensor bias = signed_numbers({5}, 2);
  for (const Shape& shape : {Shape{3}, Shape{1, 3}, Shape{4, 3}}) {
    const Tensor x = signed_numbers(shape, 3);
    const auto run = [](const auto& in) {
      return linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor());
    };
    check_gradients(run, {x, weight, bias});
    check_gradients(run, {x, weight});
    const Replaced replaced;
    const Tensor there = linear(x.detach().to(sim), weight.detach().to(sim),
                                bias.detach().to(sim));
    CHECK(allclose(there.cpu(), linear(x, weight, bias), 0, 1e-14));
  }
  const Tensor tied = signed_numbers({3, 3}, 4);
  check_gradients(
      [](const auto& in) { return linear(linear(in[0], in[1]), in[1].t()); },
      {signed_numbers({2, 3}), tied});
  CHECK(message_of<Error>([&] { linear(zeros({2}), weight, bias); }) ==
        "linear: an input of shape [2] does not fit a weight of shape [5, 3] "
        "and a bias of shape [5]");
  CHECK(contains(message_of<Error>([&] { linear(zeros({3}), Tensor()); }),
                 "undefined"));
}

TEST_CASE("dropout is a function of seed, offset and place") {
  const Tensor x = full({5, 7}, 3, DType::float64);
  const Tensor y = dropout(x, 0.25, 12345, 6);
  const Values values = y.to_vector();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = device::philox(12345, 6, i / 4);
    const bool stays = double(bits.words[i % 4]) / 4294967296.0 < 0.75;
    CHECK(values[i] == (stays ? 3 * (1 / 0.75) : 0));
  }
  CHECK_FALSE(bitwise_equal(y, dropout(x, 0.25, 12345, 7)));
  CHECK_FALSE(bitwise_equal(y, dropout(x, 0.25, 12346, 6)));
  // The place is that of the element, however the tensor lies.
  CHECK(bitwise_equal(dropout(x.t().contiguous().t(), 0.25, 12345, 6), y));
  CHECK(bitwise_equal(dropout(x.to(sim), 0.25, 12345, 6).cpu(), y));
  set_thread_count(1);
  const Tensor large = full({100003}, 1);
  const Tensor once = dropout(large, 0.5, 1, 0);
  set_thread_count(7);
  CHECK(bitwise_equal(dropout(large, 0.5, 1, 0), once));
  set_thread_count(0);
  const Values all = once.to_vector();
  const auto gone = std::count(all.begin(), all.end(), 0.0);
  CHECK(std::abs(double(gone) - 50001.5) < 5 * std::sqrt(100003 * 0.25));
}

TEST_CASE("dropout goes back through what stayed, and has its edges") {
  check_gradients([](const auto& in) { return dropout(in[0], 0.4, 3, 1); },
                  {signed_numbers({4, 5})});
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  CHECK(dropout(x, 0, 1, 1).impl() == x.impl());
  CHECK(dropout(x, 1, 1, 1).to_vector() == Values{0, 0});
  CHECK(dropout(x.to(DType::bfloat16), 0.5, 1, 1).dtype() == DType::bfloat16);
  CHECK(message_of<Error>([&] { dropout(x, 1.5, 1, 1); }) ==
        "dropout: the probability must be from 0 to 1, not 1.5");
  CHECK_THROWS_AS(dropout(x, NAN, 1, 1), Error);
  CHECK_THROWS_AS(dropout(Tensor(), 0.5, 1, 1), Error);
}

TEST_CASE("pending work on an input comes first, for every function") {
  const std::vector<std::function<Tensor(const Tensor&)>> functions = {
      [](const Tensor& x) { return relu(x); },
      [](const Tensor& x) { return gelu(x); },
      [](const Tensor& x) { return softmax(x, 0); },
      [](const Tensor& x) { return add(x, x); },
      [](const Tensor& x) { return dropout(x, 0.5, 1, 1); },
      [](const Tensor& x) { return matmul(x, x); },
      [](const Tensor& x) { return linear(x, x); }};
  for (const auto& function : functions) {
    const Tensor x = zeros({2, 2});
    Tensor result;
    auto step = compile([&] {
      foreach_add_({x}, 1.0);
      result = function(x);
    });
    step();
    CHECK(step.counters().graph_breaks == 1);
    CHECK(bitwise_equal(result, function(full({2, 2}, 1))));
  }
}

TEST_CASE("functions are no launches of the step around them") {
  const Tensor x = tensor({1.0, -2.0});
  const Tensor p = tensor({1.0});
  auto step = compile([&] {
    gelu(relu(x));
    foreach_add_({p}, 1.0);
  });
  step();
  CHECK(step.counters().launches == 1);
  CHECK(step.counters().graph_breaks == 0);
}
