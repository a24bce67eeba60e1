// Whatever a function does with gradients and in whatever order, compiled it leaves
// the bits of eager mode.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "fusebook/amp/grad_scaler.h"
#include "fusebook/compile/compile.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

constexpr const char* uses = "snvcUS";

// One parameter in training, by uses of its gradient in the order of letters.
struct Training {
  void give_gradient() {
    param.set_grad(random_tensor(param.shape(), random, 0.25));
  }

  void use(char letter) {
    switch (letter) {
      case 's':
        return sgd.step();
      case 'n':
        return give_gradient();
      case 'v':
        return clip_grad_value_({param}, 0.5);
      case 'c':
        clip_grad_norm_({param}, 1.0);
        return;
      case 'U':
        return scaler.unscale_(sgd);
      default:
        scaler.step(sgd);
        scaler.update();
    }
  }

  // What is left after each of three calls; nothing where calls are refused.
  std::vector<std::vector<double>> run(const std::string& order,
                                       bool compiled) {
    const auto all = [&] {
      for (const char letter : order) use(letter);
    };
    auto fused = compile(all, {.backend = Backend::interpreted});
    std::vector<std::vector<double>> left;
    give_gradient();
    for (int call = 0; call < 3; ++call) {
      try {
        compiled ? fused() : all();
      } catch (const Error&) {
        return {};
      }
      left.push_back(param.to_vector());
      left.push_back(param.grad().to_vector());
    }
    return left;
  }

  testing::Random random{5};
  Tensor param = full({5}, 1.0);
  SGD sgd{{param}, {.lr = 0.1}};
  GradScaler scaler{{.init_scale = 2, .growth_interval = 1000}};
};

void for_each_order(std::size_t most, const std::string& begin,
                    const std::function<void(const std::string&)>& visit) {
  for (const char* letter = uses; *letter != 0; ++letter) {
    const std::string order = begin + *letter;
    visit(order);
    if (order.size() < most) for_each_order(most, order, visit);
  }
}

}  // namespace

TEST_CASE("uses of gradients have eager's bits in any order") {
  int orders = 0;
  int refused = 0;
  for_each_order(4, "", [&](const std::string& order) {
    const auto eager = Training().run(order, false);
    ++orders;
    if (eager.empty()) {
      ++refused;
      return;
    }
    CAPTURE(order);
    CHECK(Training().run(order, true) == eager);
  });
  CHECK(orders == 6 + 36 + 216 + 1296);
  CHECK(refused < orders / 2);
}

// Lists of gradients are kept from step to step; here the next ones are of two types.
TEST_CASE("gradients that come in several types are clipped") {
  const std::vector<Tensor> params = {full({2}, 1.0, float16),
                                      full({2}, 1.0, float16)};
  SGD sgd(params, {.lr = 1.0});
  const auto give = [&](const Tensor& first, const Tensor& second) {
    Tensor(params[0]).set_grad(first);
    Tensor(params[1]).set_grad(second);
    clip_grad_value_(params, 0.5);
    sgd.step();
  };
  give(full({2}, 1.0, float16), full({2}, 1.0, float16));
  give(Tensor(), full({2}, 1.0, float32));
  give(full({2}, 1.0, float16), full({2}, 1.0, float32));
  CHECK(params[0].to_vector() == std::vector{0.0, 0.0});
  CHECK(params[1].to_vector() == std::vector{-0.5, -0.5});
}
