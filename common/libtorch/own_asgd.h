#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/asgd.h"

namespace fuse::libtorch {

/// The options of `fuse::ASGDOptions`, in LibTorch's manner.
class ASGDOptions : public OwnOptions<ASGDOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, lambd) = 1e-4;
  TORCH_ARG(double, alpha) = 0.75;
  TORCH_ARG(double, t0) = 1e6;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("lambd", self.lambd_);
    visit("alpha", self.alpha_);
    visit("t0", self.t0_);
    visit("weight_decay", self.weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class ASGDParamState : public OwnParamState<ASGDParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, ax);
  TORCH_ARG(at::Tensor, eta);
  TORCH_ARG(at::Tensor, mu);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("ax", self.ax_);
    visit("eta", self.eta_);
    visit("mu", self.mu_);
  }
};

namespace kinds {

struct ASGD : OwnKind<::fuse::ASGD, ASGDOptions, ASGDParamState> {
  static constexpr const char* name = "ASGD";
};

}  // namespace kinds

/// `fuse::ASGD` over tensors of LibTorch, in one launch.
using ASGD = Optimizer<kinds::ASGD>;

}  // namespace fuse::libtorch
