// Steps arrays that Fusebook does not own: parameters in vectors, gradients that a
// simulation writes to a new place in every step. SGD with momentum is compared with
// the loop that it stands for, bit for bit.
#include <cstdio>
#include <vector>

#include "fusebook/fusebook.h"

namespace {

constexpr int layers = 5;
constexpr int steps = 20;
constexpr float rate = 0.125F;
constexpr float momentum = 0.5F;

using Layers = std::vector<std::vector<float>>;

Layers make_layers() {
  Layers made;
  for (int k = 0; k < layers; ++k) {
    made.emplace_back(std::size_t(k * 7 + 1), float(k) - 2);
  }
  return made;
}

// What a backward pass of one's own leaves behind.
Layers gradients_of(const Layers& params, int step) {
  Layers made = params;
  for (auto& layer : made) {
    for (float& value : layer) value = value * 0.5F + float(step);
  }
  return made;
}

}  // namespace

int main() {
  Layers params = make_layers();
  Layers expected = params;
  Layers velocity(layers);

  std::vector<fuse::Tensor> tensors;
  for (auto& layer : params) {
    tensors.push_back(
        fuse::from_blob(layer.data(), {std::int64_t(layer.size())}));
  }
  fuse::SGD sgd(tensors, {.lr = rate, .momentum = momentum});
  std::vector<const void*> addresses(layers);
  auto step = fuse::compile(
      [&] { sgd.step({.grads = addresses, .dtype = fuse::DType::float32}); });

  std::vector<Layers> alive;  // so that no address comes back
  for (int i = 0; i < steps; ++i) {
    alive.push_back(gradients_of(params, i));
    for (std::size_t k = 0; k < layers; ++k) addresses[k] = alive[i][k].data();
    step();
    for (std::size_t k = 0; k < layers; ++k) {
      velocity[k].resize(expected[k].size());
      for (std::size_t e = 0; e < expected[k].size(); ++e) {
        const float grad = alive[i][k][e];
        velocity[k][e] = i == 0 ? grad : momentum * velocity[k][e] + grad;
        expected[k][e] = expected[k][e] - rate * velocity[k][e];
      }
    }
  }
  const fuse::Counters counters = step.counters();
  std::printf("Fusebook %s: %lld launches, %lld compilation, %s\n",
              fuse::version(), static_cast<long long>(counters.launches),
              static_cast<long long>(counters.compilations),
              params == expected ? "equal" : "different");
  const bool once_each =
      counters.launches == steps && counters.compilations == 1;
  return params == expected && once_each ? 0 : 1;
}
