#include "example.h"

using namespace fuse;

EXAMPLE(schedulers) {
  Tensor x = tensor({1.0});
  const auto rates = [&](const char* name, auto make) {
    SGD sgd({x}, {.lr = 1.0});
    auto scheduler = make(sgd);
    std::string line;
    for (int i = 0; i < 5; ++i) {
      scheduler.step();
      line += " " + to_string(Scalar(scheduler.get_last_lr()[0]));
    }
    print(name, line);
  };
  rates("LinearLR", [](SGD& sgd) { return LinearLR(sgd); });
  rates("ConstantLR", [](SGD& sgd) { return ConstantLR(sgd); });
  rates("PolynomialLR", [](SGD& sgd) { return PolynomialLR(sgd); });
  rates("StepLR", [](SGD& sgd) { return StepLR(sgd, {.step_size = 2}); });
  rates("ExponentialLR",
        [](SGD& sgd) { return ExponentialLR(sgd, {.gamma = 0.5}); });
  rates("MultiStepLR",
        [](SGD& sgd) { return MultiStepLR(sgd, {.milestones = {2, 4}}); });
}

EXAMPLE(one_after_the_other) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  LinearLR warmup(sgd, {.start_factor = 0.5, .total_iters = 2});
  ExponentialLR decay(sgd, {.gamma = 0.5});
  SequentialLR both(sgd, {.schedulers = {&warmup, &decay}, .milestones = {2}});
  for (int i = 0; i < 4; ++i) {
    print(sgd.param_groups[0]["lr"]);
    both.step();
  }
}

EXAMPLE(tensor_rate) {
  Tensor x = tensor({1.0});
  x.set_grad(tensor({1.0}));
  SGD sgd({x}, {.lr = tensor(0.5)});
  ExponentialLR decay(sgd, {.gamma = 0.5});
  auto step = compile([&] {
    sgd.step();
    decay.step();
  });
  for (int i = 0; i < 4; ++i) step();
  print(x, " with lr ", sgd.param_groups[0]["lr"], ", ",
        step.counters().compilations, " compilation");
}
