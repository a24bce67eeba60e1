#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.Adam, with its defaults.
struct AdamOptions {
  Scalar lr = 1e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-8;          ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool amsgrad = false;       ///< Uses the maximum of the second average.
  bool maximize = false;      ///< Maximizes the objective.
  /// Decays the parameters directly instead of adding to the gradients.
  bool decoupled_weight_decay = false;
  bool foreach = true;             ///< If false, updates one tensor at a time.
  const char* optimizer = "Adam";  ///< The name used in messages.

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("amsgrad", amsgrad);
    f("maximize", maximize);
    f("decoupled_weight_decay", decoupled_weight_decay);
  }

  /// Throws Error for anything torch.optim.Adam rejects.
  void validate() const {
    check_not_negative(optimizer, "learning rate", lr);
    check_not_negative(optimizer, "epsilon value", eps);
    check_betas(optimizer, betas);
    check_not_negative(optimizer, "weight_decay value", weight_decay);
  }
};

/// Adam (Kingma and Ba, 2015) as torch.optim.Adam computes it.
class Adam : public ListOptimizer<AdamOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const AdamOptions& o) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"},
        {.name = "exp_avg_sq", .nonnegative = true},
        {.name = "max_exp_avg_sq", .nonnegative = true}};
    return std::span(specs).first(o.amsgrad ? 3 : 2);
  }

  void update(const AdamOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& params = batch.params;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_sqs = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = decayed_gradients(
        batch, o.maximize, o.weight_decay, o.decoupled_weight_decay, o.lr);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);
    if (o.amsgrad) foreach_maximum_(batch.states[2], exp_avg_sqs);

    // One number per parameter.
    const TensorList step_sizes = foreach_neg(
        foreach_div(o.lr, foreach_sub(1.0, foreach_pow(beta1, batch.steps))));
    const TensorList bias_corrections2_sqrt =
        foreach_sqrt(foreach_sub(1.0, foreach_pow(beta2, batch.steps)));

    const TensorList denominators =
        foreach_sqrt(o.amsgrad ? batch.states[2] : exp_avg_sqs);
    foreach_div_(denominators, bias_corrections2_sqrt);
    foreach_add_(denominators, o.eps);
    foreach_addcdiv_(params, exp_avgs, denominators, step_sizes);
  }
};

}  // namespace fuse
