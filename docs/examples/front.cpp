#include "example.h"

using namespace fuse;

EXAMPLE(front) {
  std::vector<Tensor> params;
  for (int i = 0; i < 1000; ++i) params.push_back(full({64}, 1.0));
  Adam adam(params, {.lr = 0.1});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) {
    for (Tensor& p : params) p.set_grad(full({64}, 0.5));  // new ones each time
    step();
  }
  print("launches: ", step.counters().launches,
        ", compilations: ", step.counters().compilations);
  print("a weight: ", params[999].to_vector()[63]);
}
