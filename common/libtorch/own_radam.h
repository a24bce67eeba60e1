#pragma once

#include <torch/arg.h>

#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/libtorch/own_moments.h"
#include "fusebook/optim/radam.h"

namespace fuse::libtorch {

/// The options of `fuse::RAdamOptions`, in LibTorch's manner.
class RAdamOptions : public OwnOptions<RAdamOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, decoupled_weight_decay) = false;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("betas", self.betas_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("decoupled_weight_decay", self.decoupled_weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
using RAdamParamState = MomentsParamState;

namespace kinds {

struct RAdam : OwnKind<::fuse::RAdam, RAdamOptions, RAdamParamState> {
  static constexpr const char* name = "RAdam";
};

}  // namespace kinds

/// `fuse::RAdam` over tensors of LibTorch, in one launch.
using RAdam = Optimizer<kinds::RAdam>;

}  // namespace fuse::libtorch
