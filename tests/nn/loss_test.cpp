#include "fusebook/nn/loss.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "fusebook/device/device.h"
#include "fusebook/nn/functional.h"
#include "fusebook/nn/model.h"
#include "fusebook/support/error.h"
#include "support/gradients.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::message_of;

TEST_CASE("the mean of the squared differences") {
  const Tensor output = tensor({1, 2, 3, 4});
  const Tensor target = tensor({1, 0, 6, 3.5});
  CHECK(mse_loss(output, target).item() == (0 + 4 + 9 + 0.25) / 4);
  CHECK(mse_loss(output, target).dim() == 0);
  const Tensor wide = full({2, 2}, 0.1, DType::float64);
  CHECK(mse_loss(wide, zeros({2, 2}, DType::float64)).dtype() ==
        DType::float64);
}

TEST_CASE("its gradients are those of differences of the loss") {
  Generator gen(3);
  const Linear layer(5, 2, gen, true, DType::float64);
  const Tensor input = rand({7, 5}, gen, DType::float64);
  const Tensor target = rand({7, 2}, gen, DType::float64);
  mse_loss(layer(input), target).backward();
  for (Tensor param : layer.parameters()) {
    for (std::size_t i = 0; i < std::size_t(param.numel()); ++i) {
      CAPTURE(i);
      const double kept = param.data<double>()[i];
      const double h = 0x1p-20;
      param.data<double>()[i] = kept + h;
      const double above = mse_loss(layer(input), target).item();
      param.data<double>()[i] = kept - h;
      const double below = mse_loss(layer(input), target).item();
      param.data<double>()[i] = kept;
      // The loss is a parabola, so only rounding is between them.
      CHECK(param.grad().data<double>()[i] ==
            doctest::Approx((above - below) / (2 * h)).epsilon(1e-8));
    }
  }
}

TEST_CASE("what does not fit is refused") {
  const Tensor three = zeros({3});
  CHECK(message_of<Error>([&] { mse_loss(three, zeros({3, 1})); }) ==
        "mse_loss: the output has shape [3] and float32, but the target has "
        "shape "
        "[3, 1] and float32");
  CHECK(contains(
      message_of<Error>([&] { mse_loss(three, zeros({3}, DType::float64)); }),
      "float64"));
  CHECK(contains(message_of<Error>([&] { mse_loss(three, {}); }), "undefined"));
  CHECK(contains(message_of<Error>([] { mse_loss(zeros({0}), zeros({0})); }),
                 "no elements"));
  CHECK(contains(message_of<Error>([&] { mse_loss(three, three).backward(); }),
                 "needs a tensor that requires a gradient"));
}

TEST_CASE("the squared differences go back to the target too") {
  testing::check_gradients(
      [](const auto& in) { return mse_loss(in[0], in[1]); },
      {testing::signed_numbers({2, 3}, 1), testing::signed_numbers({2, 3}, 2)});
}

TEST_CASE("the cross entropy by hand") {
  const double e = std::exp(1.0);
  for (const DType dtype : {DType::float32, DType::float64}) {
    const double bound = dtype == DType::float64 ? 1e-15 : 1e-6;
    const Tensor x = tensor({0, 1, 2, 2, 2, 2}, dtype).view({2, 3});
    const double first = std::log(1 + e + e * e) - 1;
    const Tensor loss = cross_entropy(x, {1, 0});
    CHECK(loss.dtype() == dtype);
    CHECK(loss.dim() == 0);
    CHECK(std::abs(loss.item() - (first + std::log(3.0)) / 2) < bound);
    CHECK(std::abs(cross_entropy(x, {1, -100}).item() - first) < bound);
    CHECK(std::abs(cross_entropy(x, {7, 0}, 7).item() - std::log(3.0)) < bound);
    CHECK(std::abs(cross_entropy(x.select(0, 0), {1}).item() - first) < bound);
  }
  CHECK(std::isnan(cross_entropy(zeros({2, 3}), {-100, -100}).item()));
  const Tensor large = tensor({1e4, -1e4, 0, 0}).view({2, 2});
  CHECK(cross_entropy(large, {0, 0}).item() ==
        doctest::Approx(std::log(2.0) / 2));
  CHECK(cross_entropy(large, {1, 0}).item() ==
        doctest::Approx((2e4 + std::log(2.0)) / 2));
}

TEST_CASE("its gradients are (softmax - one) / n, and none where ignored") {
  const Tensor x = testing::signed_numbers({4, 3}).requires_grad_();
  const std::vector<std::int64_t> target = {2, 0, -100, 1};
  cross_entropy(x, target).backward();
  const std::vector<double> p = softmax(x.detach(), 1).to_vector();
  const std::vector<double> grad = x.grad().to_vector();
  for (std::size_t i = 0; i < 12; ++i) {
    const auto wanted = target[i / 3];
    const double one = std::int64_t(i % 3) == wanted ? 1 : 0;
    const double expected = wanted == -100 ? 0 : (p[i] - one) / 3;
    CHECK(std::abs(grad[i] - expected) < 1e-15);
  }
  testing::check_gradients(
      [&](const auto& in) { return cross_entropy(in[0], target); }, {x});
  testing::check_gradients(
      [&](const auto& in) { return nll_loss(in[0], target); }, {x});
  testing::check_gradients(
      [&](const auto& in) { return nll_loss(in[0].t(), {2, 0, 1}); }, {x});
}

TEST_CASE("the cross entropy of a GPU's output leads back there") {
  const Device sim = parse_device("cuda-sim");
  const Tensor here = testing::signed_numbers({4, 3}).requires_grad_();
  const Tensor there = here.detach().to(sim).requires_grad_();
  const Tensor loss = cross_entropy(there, {2, 0, 1, 1});
  CHECK(loss.device().is_cpu());
  loss.backward();
  cross_entropy(here, {2, 0, 1, 1}).backward();
  CHECK(there.grad().device() == sim);
  CHECK(bitwise_equal(there.grad().cpu(), here.grad()));
}

TEST_CASE("classes that are not there are refused") {
  const auto refused = [](const Tensor& input,
                          const std::vector<std::int64_t>& target) {
    return message_of<Error>([&] { cross_entropy(input, target); });
  };
  CHECK(refused(zeros({2, 3}), {0, 3}) ==
        "nll_loss: target[1] is 3, but there are only 3 classes");
  CHECK(refused(zeros({2, 3}), {-1, 0}) ==
        "nll_loss: target[0] is -1, but there are only 3 classes");
  CHECK(refused(zeros({2, 3}), {0}) ==
        "nll_loss: the input has 2 samples, but the target has 1");
  CHECK(contains(refused(zeros({2, 3, 4}), {0, 0}), "[2, 3, 4]"));
  CHECK(contains(refused(Tensor(), {}), "undefined"));
}
