#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/rprop.h"

namespace fuse::libtorch {

/// The options of `fuse::RpropOptions`, in LibTorch's manner.
class RpropOptions : public OwnOptions<RpropOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  RpropOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, etas) = { 0.5, 1.2 };
  TORCH_ARG(Pair, step_sizes) = { 1e-6, 50.0 };
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("etas", self.etas_);
    visit("step_sizes", self.step_sizes_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class RpropParamState : public OwnParamState<RpropParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, prev);
  TORCH_ARG(at::Tensor, step_size);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("prev", self.prev_);
    visit("step_size", self.step_size_);
  }
};

namespace kinds {

struct Rprop : OwnKind<::fuse::Rprop, RpropOptions, RpropParamState> {
  static constexpr const char* name = "Rprop";
};

}  // namespace kinds

/// `fuse::Rprop` over tensors of LibTorch, in one launch.
using Rprop = Optimizer<kinds::Rprop>;

}  // namespace fuse::libtorch
