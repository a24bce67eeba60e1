#include "example.h"

using namespace fuse;

EXAMPLE(train) {
  Generator gen(0);
  Sequential model({Linear(2, 8, gen), ReLU(), Linear(8, 2, gen)});
  const Tensor points = rand({32, 2}, gen);
  std::vector<std::int64_t> sides;
  for (std::int64_t i = 0; i < 32; ++i) {
    const auto p = points.select(0, i).to_vector();
    sides.push_back(p[0] > p[1] ? 1 : 0);
  }
  AdamW adam(model.parameters(), {.lr = 0.05});
  auto step = compile([&] { adam.step(); });
  for (int epoch = 0; epoch < 200; ++epoch) {
    adam.zero_grad();
    cross_entropy(model(points), sides).backward();
    step();
  }
  const double loss = cross_entropy(model(points), sides).item();
  print("learnt: ", loss < 0.1,
        ", launches per step: ", step.counters().launches / 200);
}

EXAMPLE(gradients) {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  x.requires_grad_();
  mul(x, x).sum().backward();
  print(x.grad());
}

EXAMPLE(layers) {
  Generator gen(0);
  const Tensor x = tensor({-1.0, 0.0, 1.0});
  const std::vector<Layer> layers = {ReLU(),       GELU(),    GELU(Gelu::tanh),
                                     Tanh(),       Sigmoid(), Softmax(0),
                                     LogSoftmax(0)};
  for (const Layer& layer : layers) print(layer.name(), ": ", layer(x));
  print("Flatten(): ", Flatten()(zeros({2, 3, 4})).shape());
  const Dropout dropout(0.5, gen);
  dropout.eval();
  print(dropout.name(), " outside of training: ", dropout(x));
}

EXAMPLE(parameters_by_name) {
  Generator gen(0);
  const Sequential model({Linear(2, 3, gen), ReLU(), Linear(3, 1, gen)});
  const NamedTensors named = model.named_parameters();
  for (const auto& [name, parameter] : named) {
    print(name, " ", parameter.shape());
  }
}

EXAMPLE(functions) {
  const Tensor a = tensor({-1.0, 2.0});
  const Tensor b = tensor({3.0, 5.0});
  print(add(a, b), " ", sub(a, b), " ", mul(a, b));
  print(relu(a), " ", tanh(a), " ", sigmoid(a), " ", gelu(a, Gelu::exact));
  print(softmax(a, 0), " ", log_softmax(a, 0));
  const Tensor matrix = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2});
  print(matmul(matrix, matrix).view({4}));
  print(linear(a, matrix, b));
  print(dropout(full({4}, 1.0), 0.5, 0, 0));
}

EXAMPLE(losses) {
  const Tensor output = tensor({1.0, 3.0});
  print(mse_loss(output, zeros({2})));
  const Tensor scores = tensor({2.0, 0.0, 0.0, 2.0}).view({2, 2});
  print(cross_entropy(scores, {0, 1}));
  print(nll_loss(log_softmax(scores, 1), {0, 1}));
}

EXAMPLE(own_gradient) {
  const Tensor x = tensor({1.0, 3.0});
  x.requires_grad_();
  const Tensor seen = x.detach();
  const GradFn::Backward backward = [seen](const Tensor& grad) {
    return Grads{mul(grad, add(seen, seen))};
  };
  const Tensor square = with_grad(mul(seen, seen), {x}, backward);
  print("has a gradient: ", wants_grad(square));
  square.sum().backward();
  print(x.grad());
}
