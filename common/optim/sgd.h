#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"
#include "fusebook/support/error.h"

namespace fuse {

/// Options of torch.optim.SGD, with its defaults.
struct SGDOptions {
  Scalar lr = 1e-3;        ///< Learning rate.
  Scalar momentum = 0.0;   ///< Fraction of the last update added to the next.
  Scalar dampening = 0.0;  ///< Reduces a gradient's share in the momentum.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool nesterov = false;      ///< Uses Nesterov momentum.
  bool maximize = false;      ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("momentum", momentum);
    f("dampening", dampening);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("nesterov", nesterov);
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.SGD rejects.
  void validate() const {
    check_not_negative("SGD", "learning rate", lr);
    check_not_negative("SGD", "momentum value", momentum);
    check_not_negative("SGD", "weight_decay value", weight_decay);
    if (nesterov && (momentum.value() <= 0 || dampening.value() != 0)) {
      throw Error(
          "SGD: Nesterov momentum requires a momentum and zero dampening");
    }
  }
};

/// Stochastic gradient descent, with or without momentum, as torch.optim.SGD
/// computes it. Gradients are only read, even with `nesterov`.
class SGD : public ListOptimizer<SGDOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  // Momentum may start at any step: a separate count tells which was its first.
  std::span<const StateSpec> state_specs(const SGDOptions& o) const override {
    static constexpr StateSpec specs[] = {{"momentum_buffer"},
                                          {"momentum_steps", 0, Rate::entry}};
    return std::span(specs).first(is_off(o.momentum) ? 0 : 2);
  }

  void update(const SGDOptions& o, const Batch& batch) const override {
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);
    if (is_off(o.momentum)) {
      foreach_sub_scaled_(batch.params, grads, o.lr);
      return;
    }
    const TensorList& buffers = batch.state("momentum_buffer");
    accumulate(o, buffers, batch.state("momentum_steps"), grads);
    if (o.nesterov) {
      foreach_sub_scaled_(batch.params,
                          foreach_add_scaled(grads, buffers, o.momentum), o.lr);
    } else {
      foreach_sub_scaled_(batch.params, buffers, o.lr);
    }
  }

 private:
  // The first gradient is not dampened.
  static void accumulate(const SGDOptions& o, const TensorList& buffers,
                         const TensorList& momentum_steps,
                         const TensorList& grads) {
    foreach_add_(momentum_steps, 1.0);
    const TensorList kept = foreach_mul(buffers, o.momentum);
    foreach_copy_(buffers, foreach_where(foreach_eq(momentum_steps, 1.0), grads,
                                         foreach_add_scaled(
                                             kept, grads, 1.0 - o.dampening)));
  }
};

}  // namespace fuse
