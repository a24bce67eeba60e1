#include "example.h"

using namespace fuse;

EXAMPLE(checkpoint) {
  const ScratchDirectory folder = make_temporary_directory();
  const std::string file = folder.path() + "/run.safetensors";
  const auto train = [](const Tensor& x, Adam& adam, int steps) {
    for (int i = 0; i < steps; ++i) {
      Tensor parameter = x;
      parameter.set_grad(parameter.clone());
      adam.step();
    }
  };
  const Tensor x = tensor({1.0, 2.0});
  Adam adam({x}, {.lr = 0.1});
  train(x, adam, 10);
  save_checkpoint(file, adam);
  train(x, adam, 10);

  const Tensor later = tensor({0.0, 0.0});
  Adam resumed({later}, {.lr = 0.1});
  load_checkpoint(file, resumed);
  train(later, resumed, 10);
  print("same bits: ", bitwise_equal(x, later));
}
