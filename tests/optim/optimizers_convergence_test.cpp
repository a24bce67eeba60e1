#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <typeinfo>

#include "fusebook/compile/compile.h"
#include "support/optimizer_rules.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace optimizer_rules;

namespace {

struct Minimum {
  double value = 0;
  double x = 0;
  double y = 0;
};

// Minimises a function of two numbers from a start; `gradient` returns its
// value and sets the two derivatives.
template <class Kind, class Options, class Gradient>
Minimum minimise(const Options& options, double x, double y, int steps,
                 Gradient gradient) {
  Tensor param = tensor({x, y}, DType::float64);
  param.set_grad(zeros_like(param));
  Tensor grad = param.grad();
  Kind optimizer({param}, options);
  auto step = compile([&] { optimizer.step(); },
                      {.fullgraph = true, .backend = Backend::interpreted});
  double* const at = param.data<double>();
  double* const slope = grad.data<double>();
  double value = gradient(at[0], at[1], slope);
  for (int t = 0; t < steps; ++t) {
    step();
    value = gradient(at[0], at[1], slope);
  }
  return {value, at[0], at[1]};
}

double parabola(double x, double y, double* slope) {
  slope[0] = 2 * (x - 3);
  slope[1] = 20 * (y + 1);
  return (x - 3) * (x - 3) + 10 * (y + 1) * (y + 1);
}

double rosenbrock(double x, double y, double* slope) {
  const double a = 1 - x;
  const double b = y - x * x;
  slope[0] = -2 * a - 400 * x * b;
  slope[1] = 200 * b;
  return a * a + 100 * b * b;
}

// Both functions with one rate each.
template <class Kind, class Options>
void check_converges(Options options, double parabola_lr, double rosenbrock_lr,
                     int steps) {
  CAPTURE(std::string(typeid(Kind).name()));
  options.lr = parabola_lr;
  const Minimum low = minimise<Kind>(options, -2, 2, steps, parabola);
  CHECK(low.value < 1e-4);
  CHECK(std::abs(low.x - 3) < 1e-2);
  CHECK(std::abs(low.y + 1) < 1e-2);
  options.lr = rosenbrock_lr;
  const Minimum valley = minimise<Kind>(options, -1.5, 2, steps, rosenbrock);
  CHECK(valley.value < 1e-3);
  CHECK(std::abs(valley.x - 1) < 5e-2);
  CHECK(std::abs(valley.y - 1) < 5e-2);
}

}  // namespace

TEST_CASE("every optimizer finds the bottom of a parabola and of a valley") {
  check_converges<SGD>(SGDOptions{.momentum = 0.9}, 0.01, 2e-4, 20000);
  check_converges<SGD>(SGDOptions{.momentum = 0.9, .nesterov = true}, 0.01,
                       2e-4, 20000);
  check_converges<NAdam>(NAdamOptions{}, 0.02, 0.01, 5000);
  // Its first steps are as long as the gradients, which are large here.
  check_converges<RAdam>(RAdamOptions{}, 0.02, 2e-3, 10000);
  check_converges<Adamax>(AdamaxOptions{}, 0.02, 0.02, 10000);
  check_converges<Adagrad>(AdagradOptions{}, 0.5, 0.5, 20000);
  check_converges<Adadelta>(AdadeltaOptions{.eps = 1e-8}, 1.0, 0.05, 40000);
  check_converges<RMSprop>(RMSpropOptions{}, 1e-3, 1e-3, 20000);
  check_converges<RMSprop>(RMSpropOptions{.momentum = 0.5, .centered = true},
                           1e-3, 5e-4, 20000);
  check_converges<Rprop>(RpropOptions{}, 0.01, 0.01, 5000);
  check_converges<ASGD>(ASGDOptions{.lambd = 1e-8}, 0.01, 1e-3, 20000);
}

TEST_CASE("maximize climbs") {
  Tensor param = single(0.5);
  for_each_kind([&]<class Kind, class Options>(Options options) {
    CAPTURE(std::string(typeid(Kind).name()));
    options.maximize = true;
    if constexpr (requires { options.weight_decay; }) {
      options.weight_decay = 0.0;
    }
    param.fill_(0.5);
    set_grad(param, 1.0);
    Kind optimizer({param}, options);
    optimizer.step();
    CHECK(first_of(param) > 0.5);
  });
}
