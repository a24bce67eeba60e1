#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/ademamix.h"

namespace fuse::libtorch {

/// The options of `fuse::AdEMAMixOptions`, in LibTorch's manner.
class AdEMAMixOptions : public OwnOptions<AdEMAMixOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  AdEMAMixOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Triple, betas) = { 0.9, 0.999, 0.9999 };
  TORCH_ARG(double, alpha) = 5;
  TORCH_ARG(double, t_alpha) = 0;
  TORCH_ARG(double, t_beta3) = 0;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("betas", self.betas_);
    visit("alpha", self.alpha_);
    visit("t_alpha", self.t_alpha_);
    visit("t_beta3", self.t_beta3_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class AdEMAMixParamState : public OwnParamState<AdEMAMixParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_slow);
  TORCH_ARG(at::Tensor, exp_avg_sq);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("exp_avg", self.exp_avg_);
    visit("exp_avg_slow", self.exp_avg_slow_);
    visit("exp_avg_sq", self.exp_avg_sq_);
  }
};

namespace kinds {

struct AdEMAMix
    : OwnKind<::fuse::AdEMAMix, AdEMAMixOptions, AdEMAMixParamState> {
  static constexpr const char* name = "AdEMAMix";
};

}  // namespace kinds

/// `fuse::AdEMAMix` over tensors of LibTorch, in one launch.
using AdEMAMix = Optimizer<kinds::AdEMAMix>;

}  // namespace fuse::libtorch
