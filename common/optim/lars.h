#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"
#include "fusebook/support/error.h"

namespace fuse {

/// Options of LARS. torch.optim does not have it: names are those of SGD, and
/// defaults those of its paper.
struct LARSOptions {
  Scalar lr = 1.0;        ///< Learning rate.
  Scalar momentum = 0.9;  ///< Fraction of the last update added to the next.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  /// How long a step is, as a fraction of the tensor's norm.
  Scalar trust_coefficient = 1e-3;
  Scalar eps = 1e-8;      ///< Added to denominators for stability.
  bool nesterov = false;  ///< Uses Nesterov momentum.
  bool maximize = false;  ///< Maximizes the objective.
  bool foreach = true;    ///< If false, updates one tensor at a time.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("momentum", momentum);
    f("weight_decay", weight_decay);
    f("trust_coefficient", trust_coefficient);
    f("eps", eps);
  }
  template <class F>
  void for_each_flag(F f) {
    f("nesterov", nesterov);
    f("maximize", maximize);
  }

  /// Throws Error for a negative number, and for Nesterov momentum without
  /// momentum.
  void validate() const {
    check_not_negative("LARS", "learning rate", lr);
    check_not_negative("LARS", "momentum value", momentum);
    check_not_negative("LARS", "weight_decay value", weight_decay);
    check_not_negative("LARS", "trust_coefficient value", trust_coefficient);
    check_not_negative("LARS", "epsilon value", eps);
    if (nesterov && momentum.value() <= 0) {
      throw Error("LARS: Nesterov momentum requires a momentum");
    }
  }
};

/// LARS (You, Gitman and Ginsburg, "Large Batch Training of Convolutional
/// Networks", 2017, Algorithm 1): gradient descent whose rate is, for each tensor,
/// the ratio of its norm and that of its gradient. As in the usual implementations,
/// the ratio enters the momentum and the learning rate does not, as in SGD; and
/// the ratio is 1 where one of the norms is 0. It applies to every tensor.
class LARS : public ListOptimizer<LARSOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const LARSOptions& o) const override {
    static constexpr StateSpec specs[] = {{"momentum_buffer"}};
    return std::span(specs).first(is_off(o.momentum) ? 0 : 1);
  }

  void update(const LARSOptions& o, const Batch& batch) const override {
    const TensorList& params = batch.params;
    foreach_add_(batch.steps, 1.0);
    const TensorList directions =
        foreach_mul(decayed_gradients(batch, o.maximize, o.weight_decay),
                    trust_ratios(o, batch));
    if (is_off(o.momentum)) {
      foreach_sub_scaled_(params, directions, o.lr);
      return;
    }
    const TensorList& buffers = batch.states[0];
    foreach_mul_(buffers, o.momentum);
    foreach_add_(buffers, directions);
    if (o.nesterov) {
      foreach_sub_scaled_(
          params, foreach_add_scaled(directions, buffers, o.momentum), o.lr);
    } else {
      foreach_sub_scaled_(params, buffers, o.lr);
    }
  }

 private:
  // One number per parameter. A NaN counts as true, and stays one.
  static TensorList trust_ratios(const LARSOptions& o, const Batch& batch) {
    const TensorList norms = foreach_norm(batch.params);
    const TensorList grad_norms = foreach_norm(batch.grads);
    const TensorList denominators =
        foreach_add_scaled(grad_norms, norms, o.weight_decay);
    foreach_add_(denominators, o.eps);
    return foreach_where(
        foreach_logical_and(norms, grad_norms),
        foreach_div(foreach_mul(norms, o.trust_coefficient), denominators),
        1.0);
  }
};

}  // namespace fuse
