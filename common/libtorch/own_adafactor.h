#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <tuple>

#include "fusebook/libtorch/optimizer.h"
#include "fusebook/libtorch/own_base.h"
#include "fusebook/optim/adafactor.h"

namespace fuse::libtorch {

/// The options of `fuse::AdafactorOptions`, in LibTorch's manner.
class AdafactorOptions : public OwnOptions<AdafactorOptions> {
 public:
  /// Stands for torch's None as the first of `eps`.
  static constexpr double none = ::fuse::AdafactorOptions::none;

  // NOLINTNEXTLINE(google-explicit-constructor)
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, beta2_decay) = -0.8;
  TORCH_ARG(Pair, eps) = { none, 1e-3 };
  TORCH_ARG(double, d) = 1;
  TORCH_ARG(double, weight_decay) = 0;
  TORCH_ARG(bool, maximize) = false;

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("lr", self.lr_);
    visit("beta2_decay", self.beta2_decay_);
    visit("eps", self.eps_);
    visit("d", self.d_);
    visit("weight_decay", self.weight_decay_);
    visit("maximize", self.maximize_);
  }
};

/// What `state()` holds for each parameter: averages of rows and columns for
/// matrices, all of `variance` for what has fewer dimensions; the others are
/// undefined.
class AdafactorParamState : public OwnParamState<AdafactorParamState> {
  TORCH_ARG(std::int64_t, step) = 0;
  TORCH_ARG(at::Tensor, row_var);
  TORCH_ARG(at::Tensor, col_var);
  TORCH_ARG(at::Tensor, variance);

 public:
  template <class Self, class Visit>
  static void each(Self& self, Visit visit) {
    visit("row_var", self.row_var_);
    visit("col_var", self.col_var_);
    visit("variance", self.variance_);
  }
};

namespace kinds {

struct Adafactor
    : OwnKind<::fuse::Adafactor, AdafactorOptions, AdafactorParamState> {
  static constexpr const char* name = "Adafactor";

  static bool is_complete(const AdafactorParamState& state) {
    return state.variance().defined() ||
           (state.row_var().defined() && state.col_var().defined());
  }
};

}  // namespace kinds

/// `fuse::Adafactor` over tensors of LibTorch: one launch, or four where there are
/// matrices.
using Adafactor = Optimizer<kinds::Adafactor>;

}  // namespace fuse::libtorch
