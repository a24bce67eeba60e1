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

EXAMPLE(tensors_in_a_file) {
  const ScratchDirectory folder = make_temporary_directory();
  const std::string file = folder.path() + "/model.safetensors";
  save_tensors(file, {{"weight", tensor({1.0, 2.0})}});
  const TensorMap model = {{"weight", zeros({2})}};
  load_tensors(file, model);
  print(model.at("weight"));
}

EXAMPLE(renamed) {
  const ScratchDirectory folder = make_temporary_directory();
  const std::string file = folder.path() + "/run.safetensors";
  const NamedParams old = {{"layer.weight", tensor({1.0})}};
  const NamedParams now = {{"body.weight", tensor({0.0})}};
  SGD saved(old);
  save_checkpoint(file, saved);
  SGD resumed(now);
  const LoadOptions options = {.renames = {{"layer.weight", "body.weight"}}};
  load_checkpoint(file, resumed, {}, options);
  print(now[0].second);
}
