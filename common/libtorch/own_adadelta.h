#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/adadelta.h"

namespace fuse::libtorch {

/// The options of `fuse::AdadeltaOptions`, in LibTorch's manner.
class AdadeltaOptions : public OwnOptions<AdadeltaOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, rho) = 0.9;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("rho", self.rho_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class AdadeltaParamState : public OwnParamState<AdadeltaParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, square_avg);
  TORCH_ARG(at::Tensor, acc_delta);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("square_avg", self.square_avg_);
    visit("acc_delta", self.acc_delta_);
  }
};

namespace kinds {

struct Adadelta
    : OwnKind<::fuse::Adadelta, AdadeltaOptions, AdadeltaParamState> {
  static constexpr const char* name = "Adadelta";
};

}  // namespace kinds

/// `fuse::Adadelta` over tensors of LibTorch, in one launch.
using Adadelta = Optimizer<kinds::Adadelta>;

}  // namespace fuse::libtorch
