#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/adamax.h"

namespace fuse::libtorch {

/// The options of `fuse::AdamaxOptions`, in LibTorch's manner.
class AdamaxOptions : public OwnOptions<AdamaxOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("betas", self.betas_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class AdamaxParamState : public OwnParamState<AdamaxParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_inf);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("exp_avg", self.exp_avg_);
    visit("exp_inf", self.exp_inf_);
  }
};

namespace kinds {

struct Adamax : OwnKind<::fuse::Adamax, AdamaxOptions, AdamaxParamState> {
  static constexpr const char* name = "Adamax";
};

}  // namespace kinds

/// `fuse::Adamax` over tensors of LibTorch, in one launch.
using Adamax = Optimizer<kinds::Adamax>;

}  // namespace fuse::libtorch
