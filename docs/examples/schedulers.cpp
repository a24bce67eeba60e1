#include "example.h"
#include "support/halve_lr.h"

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

EXAMPLE(along_a_curve) {
  Tensor x = tensor({1.0});
  const auto rates = [&](const char* name, auto make) {
    SGD sgd({x}, {.lr = 1.0});
    auto scheduler = make(sgd);
    std::vector<double> lrs = scheduler.get_last_lr();
    for (int i = 0; i < 4; ++i) {
      scheduler.step();
      lrs.push_back(scheduler.get_last_lr()[0]);
    }
    print(name, ": ", tensor(lrs));
  };
  rates("CosineAnnealingLR",
        [](SGD& sgd) { return CosineAnnealingLR(sgd, {.T_max = 4}); });
  rates("CosineAnnealingWarmRestarts",
        [](SGD& sgd) { return CosineAnnealingWarmRestarts(sgd, {.T_0 = 2}); });
  rates("SWALR", [](SGD& sgd) {
    return SWALR(sgd, {.swa_lr = 0.1, .anneal_epochs = 3});
  });
}

EXAMPLE(up_and_down) {
  Tensor x = tensor({1.0});
  Tensor y = tensor({1.0});
  SGD sgd({x}, {.momentum = 0.9});
  sgd.add_param_group({y});
  const PerGroup<double> peaks = {1.0, 0.1};
  CyclicLR cycle(sgd, {.base_lr = 0.0, .max_lr = peaks, .step_size_up = 2});
  for (int i = 0; i < 4; ++i) {
    print(tensor(cycle.get_last_lr()), ", momentum ",
          sgd.param_groups[0]["momentum"]);
    cycle.step();
  }
  OneCycleLR once(sgd, {.max_lr = 1.0, .total_steps = 10});
  print("OneCycleLR begins with ", tensor(once.get_last_lr()));
}

EXAMPLE(by_a_function) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  const LRLambda inverse = [](std::int64_t epoch) {
    return 1.0 / double(epoch + 1);
  };
  LambdaLR scheduler(sgd, {.lr_lambda = inverse});
  for (int i = 0; i < 3; ++i) scheduler.step();
  print("1 / (epoch + 1): ", tensor(scheduler.get_last_lr()));

  SGD other({x}, {.lr = 1.0});
  MultiplicativeLR factor(other, {.lr_lambda = inverse});
  for (int i = 0; i < 3; ++i) factor.step();
  print("times that, at each step: ", tensor(factor.get_last_lr()));
}

EXAMPLE(plateau) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  ReduceLROnPlateau scheduler(sgd, {.factor = 0.5, .patience = 1});
  for (const double loss : {3.0, 2.0, 2.0, 2.0, 1.0}) {
    scheduler.step(loss);
    print("loss ", loss, ", rate ", scheduler.get_last_lr()[0]);
  }
}

EXAMPLE(schedulers_by_name) {
  Tensor x = tensor({1.0});
  for (const std::string& name : scheduler_names()) {
    SGD sgd({x}, {.lr = 1.0, .momentum = 0.9});
    const std::unique_ptr<LRScheduler> made = make_scheduler(name, sgd, 8);
    for (int i = 0; i < 4; ++i) made->step();
    print(made->name(), ": ", tensor(made->get_last_lr()));
  }
}

EXAMPLE(state_of_a_schedule) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  StepLR scheduler(sgd, {.step_size = 2});
  for (int i = 0; i < 3; ++i) scheduler.step();
  const SchedulerState saved = scheduler.state();

  SGD resumed({x}, {.lr = 0.1});
  StepLR later(resumed, {.step_size = 2});
  SchedulerBase& any = later;
  any.load_state(saved);
  print(saved.kind, ", epoch ", any.last_epoch());
}

EXAMPLE(several_at_once) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  ConstantLR constant(sgd, {.factor = 0.5, .total_iters = 2});
  ExponentialLR decay(sgd, {.gamma = 0.5});
  const SchedulerList both = {&constant, &decay};
  ChainedScheduler chained(both);
  for (int i = 0; i < 3; ++i) {
    print(sgd.param_groups[0]["lr"]);
    chained.step();
  }
}

EXAMPLE(own_schedule) {
  Tensor x = tensor({1.0});
  SGD sgd({x}, {.lr = 1.0});
  HalveLR scheduler(sgd, {.every = 2});
  const RuleScheduler& rule = scheduler;
  for (int i = 0; i < 4; ++i) scheduler.step();
  print(rule.name(), " went from ", rule.base_lrs()[0], " to ",
        rule.get_last_lr()[0]);
}
