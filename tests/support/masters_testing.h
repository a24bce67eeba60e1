// Gradients for parameters in 16 bits, and for the same parameters in float32; steps of
// such parameters that may be skipped.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "support/step_testing.h"

namespace masters_testing {

inline void set_gradients(const std::vector<fuse::Tensor>& params, int step) {
  testing::Random random(std::uint64_t(step) + 100);
  for (fuse::Tensor param : params) {
    param.set_grad(
        step_testing::random_tensor(param.shape(), random, 0.25, param.dtype())
            .to(param.device()));
  }
}

inline std::vector<fuse::Tensor> in_float32(
    const std::vector<fuse::Tensor>& params) {
  std::vector<fuse::Tensor> wide;
  for (const fuse::Tensor& each : params) {
    wide.push_back(each.to(fuse::DType::float32));
  }
  return wide;
}

/// Gradients of the others, in float32.
inline void take_gradients(const std::vector<fuse::Tensor>& wide,
                           const std::vector<fuse::Tensor>& params) {
  for (std::size_t i = 0; i < wide.size(); ++i) {
    fuse::Tensor(wide[i]).set_grad(params[i].grad().to(fuse::DType::float32));
  }
}

/// A compiled step that may be skipped, beside one that is not called then: `use`
/// says how both keep their parameters in bfloat16.
template <class Use>
void check_skipped_steps(const std::vector<fuse::Shape>& shapes, Use use) {
  const auto params =
      step_testing::make_params(shapes, 3, fuse::DType::bfloat16);
  const auto others = step_testing::copies(params);
  fuse::Adam adam(params);
  fuse::Adam oracle(others);
  use(adam);
  use(oracle);
  fuse::Tensor skip = fuse::tensor(0.0, fuse::DType::float64);
  auto step = fuse::compile([&] { adam.step({.skip = fuse::Scalar(skip)}); });
  for (int n = 0; n < 6; ++n) {
    set_gradients(params, n);
    set_gradients(others, n);
    skip.fill_(n % 3 == 1 ? 1 : 0);
    step();
    if (n % 3 != 1) oracle.step();
    CHECK(step_testing::same_bits(params, others));
  }
}

}  // namespace masters_testing
