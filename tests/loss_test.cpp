#include "loss.h"

#include <doctest/doctest.h>

#include <vector>

#include "error.h"
#include "model.h"
#include "testing.h"

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
        "mse_loss: the output has shape [3] and float32, but the target shape "
        "[3, 1] and float32");
  CHECK(contains(
      message_of<Error>([&] { mse_loss(three, zeros({3}, DType::float64)); }),
      "float64"));
  CHECK(contains(message_of<Error>([&] { mse_loss(three, {}); }), "undefined"));
  CHECK(contains(message_of<Error>([] { mse_loss(zeros({0}), zeros({0})); }),
                 "nothing"));
  CHECK(contains(message_of<Error>([&] { mse_loss(three, three).backward(); }),
                 "nothing to go back to"));
}
