#pragma once

#include <torch/arg.h>

#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/libtorch/own_moments.h"
#include "fusebook/optim/lamb.h"

namespace fuse::libtorch {

/// The options of `fuse::LAMBOptions`, in LibTorch's manner.
class LAMBOptions : public OwnOptions<LAMBOptions> {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  LAMBOptions(double lr = 1e-3) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(Pair, betas) = { 0.9, 0.999 };
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 1e-2;
  TORCH_ARG(bool, bias_correction) = true;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("betas", self.betas_);
    visit("eps", self.eps_);
    visit("weight_decay", self.weight_decay_);
    visit("bias_correction", self.bias_correction_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter.
using LAMBParamState = MomentsParamState;

namespace kinds {

struct LAMB : OwnKind<::fuse::LAMB, LAMBOptions, LAMBParamState> {
  static constexpr const char* name = "LAMB";
};

}  // namespace kinds

/// `fuse::LAMB` over tensors of LibTorch, in one launch.
using LAMB = Optimizer<kinds::LAMB>;

}  // namespace fuse::libtorch
