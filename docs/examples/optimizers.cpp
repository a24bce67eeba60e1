#include "example.h"

using namespace fuse;

EXAMPLE(groups) {
  Tensor body = tensor({1.0});
  Tensor head = tensor({1.0});
  body.set_grad(tensor({1.0}));
  head.set_grad(tensor({1.0}));
  SGD sgd({body}, {.lr = 0.1});
  sgd.add_param_group({head}, {{"lr", 0.5}});
  sgd.step();
  print(body, " ", head);
  for (auto& group : sgd.param_groups) print("lr ", group["lr"]);
}

EXAMPLE(every_optimizer) {
  const auto end_of = [](auto make) {
    Tensor x = tensor({1.0, -2.0});
    auto optimizer = make(x);
    auto step = compile([&] { optimizer.step(); });
    for (int i = 0; i < 100; ++i) {
      x.set_grad(x.clone());
      step();
    }
    print(optimizer.name(), ": ", x, ", ", step.counters().compilations,
          " compilation");
  };
  end_of([](const Tensor& x) { return SGD({x}, {.lr = 0.1}); });
  end_of([](const Tensor& x) { return Adam({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return AdamW({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return NAdam({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return RAdam({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return Adamax({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return RMSprop({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return Adagrad({x}, {.lr = 0.5}); });
  end_of([](const Tensor& x) { return Adadelta({x}, {.lr = 1.0}); });
  end_of([](const Tensor& x) { return ASGD({x}, {.lr = 0.1}); });
  end_of([](const Tensor& x) { return Rprop({x}, {.lr = 0.01}); });
  end_of([](const Tensor& x) { return AdEMAMix({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return LAMB({x}, {.lr = 0.05}); });
  end_of([](const Tensor& x) { return LARS({x}, {.lr = 50.0}); });
  end_of([](const Tensor& x) { return Adafactor({x}, {.lr = 0.05}); });
}

EXAMPLE(muon) {
  Tensor weight = full({4, 4}, 1.0);
  Tensor bias = full({4}, 1.0);
  weight.set_grad(full({4, 4}, 0.5));
  bias.set_grad(full({4}, 0.5));
  Muon muon({weight});
  AdamW adamw({bias});  // what is no matrix
  auto step = compile([&] {
    muon.step();
    adamw.step();
  });
  step();
  print("launches: ", step.counters().launches);
  print("graph breaks: ", step.counters().graph_breaks);
}

EXAMPLE(adafactor) {
  Tensor weight = full({2, 3}, 1.0);
  weight.set_grad(tensor({1, 2, 3, 4, 5, 6}).view({2, 3}));
  Adafactor adafactor({weight});
  auto step = compile([&] { adafactor.step(); });
  step();
  print("squares of rows: ", adafactor.state(weight, "row_var").view({2}));
  print("squares of columns: ", adafactor.state(weight, "col_var").view({3}));
  print("launches: ", step.counters().launches);
  print("graph breaks: ", step.counters().graph_breaks);
}

EXAMPLE(state) {
  Tensor x = tensor({1.0});
  x.set_grad(tensor({0.5}));
  Adam adam({x});
  adam.step();
  print("step ", adam.state(x, "step"), ", exp_avg ", adam.state(x, "exp_avg"));
}

EXAMPLE(hooks) {
  Tensor x = tensor({1.0});
  x.set_grad(tensor({1.0}));
  SGD sgd({x}, {.lr = 0.25});
  const RemovableHandle hook = sgd.register_step_post_hook(
      [&](Optimizer& which) { print(which.name(), " made it ", x); });
  sgd.step();
  hook.remove();
  sgd.step();
  print(x);
}

EXAMPLE(states_in_8_bits) {
  Tensor x = full({100, 100}, 1.0);
  x.set_grad(full({100, 100}, 0.5));
  Adam adam({x});
  adam.use_8bit_states();
  auto step = compile([&] { adam.step(); });
  step();
  print("launches: ", step.counters().launches);
  const Tensor mean = adam.state(x, "exp_avg");
  print(name_of(mean.dtype()), " ",
        mean.to(float32).select(0, 0).narrow(0, 0, 2));
  const OptimizerMemory memory = adam.memory();
  print("bytes: ", memory.params, " of parameters, ", memory.states,
        " of states, ", memory.scales, " of scales");
}
