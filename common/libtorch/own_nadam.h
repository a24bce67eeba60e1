#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/nadam.h"

namespace fuse::libtorch {

/// The options of `fuse::NAdamOptions`, in LibTorch's manner.
class NAdamOptions : public OwnOptions<NAdamOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, momentum_decay) = 4e-3;
  TORCH_ARG(bool, decoupled_weight_decay) = false;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("betas", self.betas_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("momentum_decay", self.momentum_decay_);
    visit("decoupled_weight_decay", self.decoupled_weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class NAdamParamState : public OwnParamState<NAdamParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, exp_avg);
  TORCH_ARG(at::Tensor, exp_avg_sq);
  TORCH_ARG(at::Tensor, mu_product);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("exp_avg", self.exp_avg_);
    visit("exp_avg_sq", self.exp_avg_sq_);
    visit("mu_product", self.mu_product_);
  }
};

namespace kinds {

struct NAdam : OwnKind<::fuse::NAdam, NAdamOptions, NAdamParamState> {
  static constexpr const char* name = "NAdam";
};

}  // namespace kinds

/// `fuse::NAdam` over tensors of LibTorch, in one launch.
using NAdam = Optimizer<kinds::NAdam>;

}  // namespace fuse::libtorch
