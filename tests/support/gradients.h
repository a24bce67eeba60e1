#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "fusebook/nn/functional.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/random.h"
#include "fusebook/tensor/tensor.h"

namespace testing {

/// Numbers from -1 to 1 in float64.
inline fuse::Tensor signed_numbers(const fuse::Shape& shape,
                                   std::uint64_t seed = 1) {
  fuse::Generator generator(seed);
  const fuse::Tensor result =
      fuse::empty(shape, fuse::DType::float64, fuse::cpu_device);
  fuse::uniform_(result, -1, 1, generator);
  return result;
}

using Function = std::function<fuse::Tensor(const std::vector<fuse::Tensor>&)>;

/// The sum of all results, each times another number, so that no two elements of
/// a gradient are alike.
inline fuse::Tensor weighted_sum(const fuse::Tensor& result) {
  const fuse::Tensor weights = signed_numbers(result.shape(), 99);
  return fuse::mul(result, weights.to(result.device())).sum();
}

/// Compares the gradients of all inputs, which are float64 and contiguous, with
/// central differences.
inline void check_gradients(const Function& function,
                            const std::vector<fuse::Tensor>& inputs,
                            double tolerance = 1e-7) {
  for (const fuse::Tensor& input : inputs) {
    fuse::Tensor(input).set_grad({});
    input.requires_grad_();
  }
  weighted_sum(function(inputs)).backward();
  const double h = 0x1p-18;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    fuse::Tensor input = inputs[k];
    REQUIRE(input.grad().defined());
    REQUIRE(input.grad().shape() == input.shape());
    const std::vector<double> grad = input.grad().to_vector();
    for (std::size_t i = 0; i < grad.size(); ++i) {
      CAPTURE(k);
      CAPTURE(i);
      const fuse::NoGradGuard guard;
      const double kept = input.data<double>()[i];
      input.data<double>()[i] = kept + h;
      const double above = weighted_sum(function(inputs)).item();
      input.data<double>()[i] = kept - h;
      const double below = weighted_sum(function(inputs)).item();
      input.data<double>()[i] = kept;
      CHECK(std::abs(grad[i] - (above - below) / (2 * h)) < tolerance);
    }
  }
}

}  // namespace testing
