#include "example.h"
#include "support/lion.h"

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

EXAMPLE(state_block_size) {
  Tensor x = full({100, 100}, 1.0);
  Tensor y = full({100, 100}, 1.0);
  for (Tensor each : {x, y}) each.set_grad(full({100, 100}, 0.5));
  Adam adam({Adam::Group({x}), Adam::Group({y})});
  adam.use_8bit_states();
  adam.group(1).state_block_size = 64;
  adam.step();
  for (const Tensor& each : {x, y}) {
    const DType type = adam.state(each, "exp_avg").dtype();
    print(name_of(type), ": a scale for every ", block_size_of(type));
  }
  print("bytes of scales: ", adam.memory().scales);
}

EXAMPLE(stochastic_rounding) {
  Tensor x = full({10000}, 1.0, bfloat16);
  x.set_grad(full({10000}, -0.0009765625, bfloat16));
  SGD sgd({x}, {.lr = 1.0});
  sgd.use_stochastic_rounding(true, 1);
  auto step = compile([&] { sgd.step(); });
  for (int n = 0; n < 8; ++n) step();
  print("launches: ", step.counters().launches);
  print("first elements: ", x.narrow(0, 0, 4));
  print("mean: ", x.to(float32).sum() / 10000);
}

EXAMPLE(opmath) {
  const auto stepped = [](DType type, bool opmath) {
    Generator gen(0);
    Tensor x = zeros({10000}, type);
    Adam adam({x}, {.lr = 0.01});
    adam.use_opmath(opmath);
    auto step = compile([&] { adam.step(); });
    for (int n = 0; n < 5; ++n) {
      x.set_grad(rand({10000}, gen).to(type));
      step();
    }
    return x.to_vector();
  };
  const auto exact = stepped(float32, false);
  for (const bool opmath : {false, true}) {
    const auto values = stepped(bfloat16, opmath);
    double most = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      most = std::max(most, std::abs(values[i] / exact[i] - 1));
    print("largest relative error ", opmath ? "with it: " : "without: ", most);
  }
}

EXAMPLE(options_by_name) {
  const NamedParams named = {{"weight", tensor({1.0})},
                             {"bias", tensor({1.0})}};
  Adam adam(named);
  ParamGroup& group = adam.param_groups[0];
  const OptionValue on = true;
  const GroupOptions options = {
      {"lr", 0.1}, {"betas[0]", 0.8}, {"amsgrad", on}};
  group.set(options);
  print(group.param_names[1], ": lr ", group["lr"], ", betas[0] ",
        group["betas[0]"]);
}

EXAMPLE(state_dict) {
  Tensor x = tensor({1.0});
  x.set_grad(tensor({0.5}));
  Adam adam({x}, {.lr = 0.1});
  adam.step();
  const StateDict saved = adam.state_dict();
  const ParamStates& states = saved.state.at(0);
  print(saved.optimizer, ", steps ", saved.steps, ", states ", states.size());

  Adam resumed({x});
  resumed.load_state_dict(saved);
  print("lr ", resumed.param_groups[0]["lr"], ", exp_avg ",
        resumed.state(x, "exp_avg"));
}

EXAMPLE(gradients_of_others) {
  Tensor x = tensor({1.0, 2.0});
  SGD sgd({x}, {.lr = 0.5});
  const std::vector<float> gradient = {1.0F, -1.0F};
  const void* const addresses[] = {gradient.data()};
  sgd.step(GradientAddresses{.grads = addresses});
  print(x);
}

EXAMPLE(not_there) {
  const std::vector<Tensor> params = {tensor({1.0})};
  try {
    const LBFGS lbfgs(params);
  } catch (const Error& error) {
    print(error.what());
  }
  try {
    const SparseAdam sparse(params);
  } catch (const Error& error) {
    print(error.what());
  }
}

EXAMPLE(own_optimizer) {
  Tensor x = tensor({1.0, -2.0});
  Lion lion({x}, {.lr = 0.1});
  auto step = compile([&] { lion.step(); });
  for (int i = 0; i < 5; ++i) {
    x.set_grad(x.clone());
    step();
  }
  print(x, ", launches: ", step.counters().launches);
  print("off: ", is_off(0.0), ", a tensor: ", is_off(tensor(0.0)));
  try {
    check_argument("Lion", "learning rate", -1.0, false);
  } catch (const Error& error) {
    print(error.what());
  }
}

EXAMPLE(means_of_matrices) {
  const TensorList list = {tensor({1.0, 2.0, 3.0, 6.0}).view({2, 2})};
  MatrixMeans means(list, {.rows = true, .columns = true});
  means.take(list);
  print(means.rows()[0].view({2}), " ", means.columns()[0].view({2}));
}
