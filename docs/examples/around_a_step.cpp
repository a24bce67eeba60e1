#include "example.h"

using namespace fuse;

EXAMPLE(skipped_step) {
  Tensor param = tensor({1.0, 2.0});
  SGD opt({param}, {.lr = 0.5});
  const auto step = [&] {
    const TensorList grads = {param.grad()};
    opt.step({.skip = 1.0 - all_finite(grads)});
  };
  auto compiled = compile(step);
  for (const double gradient : {1.0, double(INFINITY), 2.0}) {
    param.set_grad(full({2}, gradient));
    compiled();
    print(param, ", after ", opt.state(param, "step").item(), " of ",
          opt.steps(), " steps");
  }
}

EXAMPLE(scaler) {
  Tensor param = tensor({1.0, 2.0});
  SGD opt({param}, {.lr = 0.5});
  GradScaler scaler({.init_scale = 1024.0});
  auto tail = compile([&] {
    scaler.unscale_(opt);
    clip_grad_norm_({param}, 1.0);
    scaler.step(opt);
    scaler.update();
  });
  for (const double gradient : {3.0, double(INFINITY)}) {
    param.set_grad(full({2}, gradient * scaler.get_scale()));
    tail();
    print(param, ", the next scale is ", scaler.get_scale());
  }
}

EXAMPLE(averages) {
  Generator generator(1);
  const Sequential model({Linear(1, 1, generator, false)});
  model.parameters()[0].fill_(1);
  SGD opt(model.parameters(), {.lr = 0.5});
  AveragedModel averaged(model, get_ema_multi_avg_fn(0.9));
  auto tail = compile([&] {
    opt.step();
    averaged.update_parameters(model);
  });
  for (int i = 0; i < 3; ++i) {
    model.parameters()[0].set_grad(full({1, 1}, 2));
    tail();
    print(model.parameters()[0], " on average ",
          averaged.module.parameters()[0]);
  }
  print(tail.counters().launches, " launches");
}

EXAMPLE(state_of_a_scaler) {
  GradScaler scaler({.init_scale = 1024.0});
  const GradScalerState saved = scaler.state_dict();
  const GradScalerOptions others = {.growth_interval = 5};
  GradScaler resumed(others);
  resumed.load_state_dict(saved);
  print("scale ", resumed.get_scale(), ", interval ",
        resumed.get_growth_interval());
}

EXAMPLE(averages_of_tensors) {
  const Tensor param = tensor({1.0});
  const Tensor average = zeros_like(param);
  const MultiAvgFn mean = get_swa_multi_avg_fn();
  ParameterAverages averages({average}, mean);
  for (const double value : {1.0, 2.0, 6.0}) {
    Tensor(param).fill_(value);
    averages.update({param});
  }
  const AverageOptions skipped = {.skip = 1.0};
  averages.update({param}, skipped);
  print(average, " of ", averages.n_averaged());
}
