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
