#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of AdEMAMix. torch.optim does not have it: names and defaults are those
/// of bitsandbytes.
struct AdEMAMixOptions {
  Scalar lr = 1e-3;  ///< Learning rate.
  /// Decays of the fast average, of the squares and of the slow average.
  std::array<Scalar, 3> betas = {0.9, 0.999, 0.9999};
  Scalar alpha = 5.0;    ///< Weight of the slow average.
  Scalar t_alpha = 0.0;  ///< Steps in which `alpha` grows from 0; 0: none.
  /// Steps in which the decay of the slow average grows from that of the fast one;
  /// 0: none.
  Scalar t_beta3 = 0.0;
  Scalar eps = 1e-8;           ///< Added to denominators for stability.
  Scalar weight_decay = 1e-2;  ///< Strength of the decoupled weight decay.
  bool maximize = false;       ///< Maximizes the objective.
  bool foreach = true;         ///< If false, updates one tensor at a time.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("alpha", alpha);
    f("t_alpha", t_alpha);
    f("t_beta3", t_beta3);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for a negative number, and for betas outside [0, 1).
  void validate() const {
    check_not_negative("AdEMAMix", "learning rate", lr);
    check_betas("AdEMAMix", betas);
    check_not_negative("AdEMAMix", "alpha value", alpha);
    check_not_negative("AdEMAMix", "t_alpha value", t_alpha);
    check_not_negative("AdEMAMix", "t_beta3 value", t_beta3);
    check_not_negative("AdEMAMix", "epsilon value", eps);
    check_not_negative("AdEMAMix", "weight_decay value", weight_decay);
  }
};

/// AdEMAMix (Pagliardini, Ablin and Grangier, "The AdEMAMix Optimizer: Better,
/// Faster, Older", 2024): AdamW with a second average of the gradients, which
/// remembers thousands of steps. Its decay grows so that its half-life grows in a
/// straight line.
class AdEMAMix : public ListOptimizer<AdEMAMixOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const AdEMAMixOptions& /*o*/) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"},
        {"exp_avg_slow"},
        {.name = "exp_avg_sq", .nonnegative = true}};
    return specs;
  }

  void update(const AdEMAMixOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2, beta3] = o.betas;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_slows = batch.states[1];
    const TensorList& exp_avg_sqs = batch.states[2];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay, true, o.lr);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    if (is_off(o.t_beta3)) {
      foreach_lerp_(exp_avg_slows, grads, 1.0 - beta3);
    } else {
      foreach_lerp_(exp_avg_slows, grads,
                    foreach_sub(1.0, slow_decays(o, batch.steps)));
    }
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);

    const TensorList directions = foreach_div(
        exp_avgs, foreach_sub(1.0, foreach_pow(beta1, batch.steps)));
    if (is_off(o.t_alpha)) {
      foreach_add_scaled_(directions, exp_avg_slows, o.alpha);
    } else {
      foreach_add_scaled_(directions, exp_avg_slows,
                          foreach_mul(grown(o.t_alpha, batch.steps), o.alpha));
    }
    const TensorList denominators = foreach_sqrt(exp_avg_sqs);
    foreach_div_(denominators, foreach_sqrt(foreach_sub(
                                   1.0, foreach_pow(beta2, batch.steps))));
    foreach_add_(denominators, o.eps);
    foreach_sub_scaled_(batch.params, foreach_div(directions, denominators),
                        o.lr);
  }

 private:
  // One number per parameter: from 0 to 1 in `total` steps.
  static TensorList grown(const Scalar& total, const TensorList& steps) {
    return foreach_minimum(foreach_div(steps, total), 1.0);
  }

  // A decay b halves in log(1/2) / log(b) steps: between beta1 and beta3 that is
  // in a straight line.
  static TensorList slow_decays(const AdEMAMixOptions& o,
                                const TensorList& steps) {
    const TensorList shares = grown(o.t_beta3, steps);
    const TensorList ones = foreach_minimum(steps, 1.0);
    const TensorList lengths = foreach_add(
        foreach_div(foreach_sub(1.0, shares),
                    foreach_log(foreach_mul(ones, o.betas[0]))),
        foreach_div(shares, foreach_log(foreach_mul(ones, o.betas[2]))));
    return foreach_where(foreach_lt(shares, 1.0),
                         foreach_exp(foreach_reciprocal(lengths)), o.betas[2]);
  }
};

}  // namespace fuse
