#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/lars.h"

namespace fuse::libtorch {

/// The options of `fuse::LARSOptions`, in LibTorch's manner.
class LARSOptions : public OwnOptions<LARSOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  LARSOptions(double lr = 1.0) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.9;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(double, trust_coefficient) = 1e-3;
  TORCH_ARG(double, eps) = 1e-8;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("momentum", self.momentum_);
    visit("weight_decay", self.weight_decay_);
    visit("trust_coefficient", self.trust_coefficient_);
    visit("eps", self.eps_);
    visit("nesterov", self.nesterov_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
class LARSParamState : public OwnParamState<LARSParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, momentum_buffer);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("momentum_buffer", self.momentum_buffer_);
  }
};

namespace kinds {

struct LARS : OwnKind<::fuse::LARS, LARSOptions, LARSParamState> {
  static constexpr const char* name = "LARS";
  static bool keeps_states(const Options& o) { return o.momentum() != 0; }
};

}  // namespace kinds

/// `fuse::LARS` over tensors of LibTorch, in one launch.
using LARS = Optimizer<kinds::LARS>;

}  // namespace fuse::libtorch
