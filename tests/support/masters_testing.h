// Gradients for parameters in 16 bits, and for the same parameters in float32.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace masters_testing
