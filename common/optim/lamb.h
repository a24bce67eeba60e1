#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of LAMB. torch.optim does not have it: names are those of AdamW, and
/// defaults those that its implementations agree on.
struct LAMBOptions {
  Scalar lr = 1e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-6;            ///< Added to denominators for stability.
  Scalar weight_decay = 1e-2;   ///< Strength of the weight decay.
  bool bias_correction = true;  ///< Corrects the averages of the first steps.
  bool maximize = false;        ///< Maximizes the objective.
  bool foreach = true;          ///< If false, updates one tensor at a time.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("bias_correction", bias_correction);
    f("maximize", maximize);
  }

  /// Throws Error for a negative rate, epsilon or decay, and for betas outside
  /// [0, 1).
  void validate() const {
    check_not_negative("LAMB", "learning rate", lr);
    check_not_negative("LAMB", "epsilon value", eps);
    check_betas("LAMB", betas);
    check_not_negative("LAMB", "weight_decay value", weight_decay);
  }
};

/// LAMB (You et al., "Large Batch Optimization for Deep Learning: Training BERT in
/// 76 minutes", 2020, Algorithm 2): the direction of AdamW, as long for each
/// tensor as the tensor itself. The ratio of the two norms is not bounded, and it
/// is 1 where one of them is 0. It applies to every tensor; clipping by the norm
/// of all gradients is up to `clip_grad_norm_`.
class LAMB : public ListOptimizer<LAMBOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const LAMBOptions& /*o*/) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"}, {.name = "exp_avg_sq", .nonnegative = true}};
    return specs;
  }

  void update(const LAMBOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& params = batch.params;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_sqs = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = signed_gradients(batch, o.maximize);
    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);

    const TensorList directions = adam_directions(o, batch);
    if (!is_off(o.weight_decay)) {
      foreach_add_scaled_(directions, params, o.weight_decay);
    }

    // One number per parameter. A NaN counts as true, and stays one.
    const TensorList norms = foreach_norm(params);
    const TensorList lengths = foreach_norm(directions);
    const TensorList trust_ratios = foreach_where(
        foreach_logical_and(norms, lengths), foreach_div(norms, lengths), 1.0);
    foreach_sub_scaled_(params, directions, foreach_mul(trust_ratios, o.lr));
  }

 private:
  static TensorList adam_directions(const LAMBOptions& o, const Batch& batch) {
    const auto& [beta1, beta2] = o.betas;
    const TensorList denominators = foreach_sqrt(batch.states[1]);
    if (!o.bias_correction) {
      foreach_add_(denominators, o.eps);
      return foreach_div(batch.states[0], denominators);
    }
    const TensorList corrections1 =
        foreach_sub(1.0, foreach_pow(beta1, batch.steps));
    const TensorList corrections2_sqrt =
        foreach_sqrt(foreach_sub(1.0, foreach_pow(beta2, batch.steps)));
    foreach_div_(denominators, corrections2_sqrt);
    foreach_add_(denominators, o.eps);
    foreach_mul_(denominators, corrections1);
    return foreach_div(batch.states[0], denominators);
  }
};

}  // namespace fuse
