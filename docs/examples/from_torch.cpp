#include "example.h"

using namespace fuse;

EXAMPLE(torch_model) {
  Generator gen(0);
  const Sequential model = linear_stack(10, 64, gen);
  const Tensor input = rand({64}, gen);
  model(input).sum().backward();
  print(model.parameters().size(), " parameters with gradients");
}

EXAMPLE(torch_compile) {
  Generator gen(0);
  const Sequential model = linear_stack(10, 64, gen);
  model(rand({64}, gen)).sum().backward();

  Adam opt(model.parameters(), {.lr = 0.01});
  auto fn = compile([&] { opt.step(); });
  for (int i = 0; i < 5; ++i) fn();
  print("launches: ", fn.counters().launches);
}

EXAMPLE(torch_fullgraph) {
  const Tensor weight = tensor({1.0, 2.0});
  const TensorList weights = {weight};
  auto fn = compile(
      [&] {
        foreach_mul_(weights, 2);
        if (weight.sum().item() > 5) foreach_sub_(weights, 1);
      },
      {.fullgraph = true});
  try {
    fn();
  } catch (const Error& error) {
    print(error.what());
  }
}

EXAMPLE(torch_scheduler) {
  Tensor weight = tensor({1.0});
  weight.set_grad(tensor({1.0}));

  Adam opt({weight}, {.lr = tensor(0.01)});
  LinearLR sched(opt, {.total_iters = 5});
  auto fn = compile([&] {
    opt.step();
    sched.step();
  });
  for (int i = 0; i < 5; ++i) {
    fn();
    print(opt.param_groups[0]["lr"]);
  }
}

EXAMPLE(torch_foreach_map) {
  const TensorList params = {tensor({1.0, 2.0}), tensor({3.0})};
  const TensorList grads = {tensor({4.0, 4.0}), tensor({4.0})};
  const auto decayed = [](auto grad, auto param) { return grad + 0.1 * param; };
  auto fn = compile([&] { return foreach_map(decayed, grads, params); });
  for (const Tensor& each : fn()) print(each);
}

EXAMPLE(torch_timer) {
  const TensorList list = {zeros({1000})};
  auto fn = compile([&] { foreach_add_(list, 1); });
  for (int i = 0; i < 5; ++i) fn();
  const double us = blocked_autorange(fn).mean_us();
  print("took time: ", us > 0);
}
