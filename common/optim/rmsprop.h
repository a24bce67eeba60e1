#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.RMSprop, with its defaults.
struct RMSpropOptions {
  Scalar lr = 1e-2;           ///< Learning rate.
  Scalar alpha = 0.99;        ///< Decay of the averages.
  Scalar eps = 1e-8;          ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  Scalar momentum = 0.0;  ///< Fraction of the last update added to the next.
  /// Divides by an estimate of the variance instead of the second moment.
  bool centered = false;
  bool maximize = false;  ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("alpha", alpha);
    f("eps", eps);
    f("weight_decay", weight_decay);
    f("momentum", momentum);
  }
  template <class F>
  void for_each_flag(F f) {
    f("centered", centered);
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.RMSprop rejects.
  void validate() const {
    check_not_negative("RMSprop", "learning rate", lr);
    check_not_negative("RMSprop", "epsilon value", eps);
    check_not_negative("RMSprop", "momentum value", momentum);
    check_not_negative("RMSprop", "weight_decay value", weight_decay);
    check_not_negative("RMSprop", "alpha value", alpha);
  }
};

/// RMSprop (Hinton, 2012; centered: Graves, 2013) as torch.optim.RMSprop
/// computes it.
class RMSprop : public ListOptimizer<RMSpropOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const RMSpropOptions& o) const override {
    static constexpr StateSpec specs[] = {
        {"grad_avg"},
        {.name = "square_avg", .nonnegative = true},
        {"momentum_buffer"}};
    return std::span(specs).subspan(
        o.centered ? 0 : 1,
        1 + std::size_t(o.centered) + std::size_t(!is_off(o.momentum)));
  }

  void update(const RMSpropOptions& o, const Batch& batch) const override {
    const TensorList& square_avgs = batch.state("square_avg");
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);

    foreach_mul_(square_avgs, o.alpha);
    foreach_addcmul_(square_avgs, grads, grads, 1.0 - o.alpha);
    const TensorList denominators =
        foreach_sqrt(o.centered ? variances(o, batch, grads) : square_avgs);
    foreach_add_(denominators, o.eps);

    if (is_off(o.momentum)) {
      foreach_addcdiv_(batch.params, grads, denominators, 0.0 - o.lr);
    } else {
      const TensorList& buffers = batch.state("momentum_buffer");
      foreach_mul_(buffers, o.momentum);
      foreach_addcdiv_(buffers, grads, denominators, 1.0);
      foreach_sub_scaled_(batch.params, buffers, o.lr);
    }
  }

 private:
  static TensorList variances(const RMSpropOptions& o, const Batch& batch,
                              const TensorList& grads) {
    const TensorList& grad_avgs = batch.state("grad_avg");
    foreach_lerp_(grad_avgs, grads, 1.0 - o.alpha);
    return foreach_addcmul(batch.state("square_avg"), grad_avgs, grad_avgs,
                           -1.0);
  }
};

}  // namespace fuse
