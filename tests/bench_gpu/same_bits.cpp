#include "bench_gpu/same_bits.h"

#include <algorithm>
#include <memory>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/tensor/random.h"

namespace fuse::bench {
namespace {

// More than one chunk, with a tail.
constexpr std::int64_t most_elements = 5003;
constexpr std::size_t most_tensors = 100;

std::vector<Tensor> numbers(const Case& wanted, std::uint64_t seed) {
  Generator generator(seed);
  std::vector<Tensor> tensors;
  for (const std::int64_t size : wanted.sizes) {
    if (tensors.size() == most_tensors) break;
    tensors.push_back(rand({std::min(size, most_elements)}, generator));
  }
  return tensors;
}

// The same numbers wherever they lie.
std::vector<Tensor> parameters(const Case& wanted, const Device& device) {
  std::vector<Tensor> params;
  const std::vector<Tensor> grads = numbers(wanted, 2);
  for (const Tensor& param : numbers(wanted, 1)) {
    params.push_back(param.cpu().clone().to(device));
    params.back().set_grad(grads[params.size() - 1].cpu().clone().to(device));
  }
  return params;
}

std::vector<Tensor> trained(const Case& wanted, const Device& device,
                            bool compiled) {
  std::vector<Tensor> params = parameters(wanted, device);
  Adam adam(params, {.lr = 0.01, .weight_decay = 0.1});
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 3; ++i) {
    if (compiled) {
      step();
    } else {
      adam.step();
    }
  }
  return params;
}

}  // namespace

GpuBits compare_bits(const Case& wanted) {
  const Device device = default_device();
  const auto fused = trained(wanted, device, true);
  return {wanted.name, bitwise_equal(fused, trained(wanted, device, false)),
          bitwise_equal(fused, trained(wanted, cpu_device, false))};
}

}  // namespace fuse::bench
