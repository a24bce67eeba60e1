#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.Adamax, with its defaults.
struct AdamaxOptions {
  Scalar lr = 2e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-8;          ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool maximize = false;      ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.Adamax rejects.
  void validate() const {
    check_not_negative("Adamax", "learning rate", lr);
    check_not_negative("Adamax", "epsilon value", eps);
    check_betas("Adamax", betas);
    check_not_negative("Adamax", "weight_decay value", weight_decay);
  }
};

/// Adam with the infinity norm (Kingma and Ba, 2015) as torch.optim.Adamax
/// computes it.
class Adamax : public ListOptimizer<AdamaxOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const AdamaxOptions&) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"}, {.name = "exp_inf", .nonnegative = true}};
    return specs;
  }

  void update(const AdamaxOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_infs = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_infs, beta2);
    foreach_maximum_(exp_infs, foreach_add(foreach_abs(grads), o.eps));

    const TensorList step_sizes = foreach_neg(
        foreach_div(o.lr, foreach_sub(1.0, foreach_pow(beta1, batch.steps))));
    foreach_addcdiv_(batch.params, exp_avgs, exp_infs, step_sizes);
  }
};

}  // namespace fuse
