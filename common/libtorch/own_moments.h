#pragma once

#include <torch/arg.h>

#include <cstdint>

#include "fusebook/libtorch/own_base.h"

namespace fuse::libtorch {

/// What `state()` holds for each parameter: the averages of its gradients and of
/// their squares.
class MomentsParamState : public OwnParamState<MomentsParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_sq);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("exp_avg", self.exp_avg_);
    visit("exp_avg_sq", self.exp_avg_sq_);
  }
};

}  // namespace fuse::libtorch
