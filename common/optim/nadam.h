#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.NAdam, with its defaults.
struct NAdamOptions {
  Scalar lr = 2e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-8;             ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;     ///< Strength of the weight decay.
  Scalar momentum_decay = 4e-3;  ///< Speed at which momentum grows.
  /// Decays the parameters directly instead of adding to the gradients.
  bool decoupled_weight_decay = false;
  bool maximize = false;  ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("eps", eps);
    f("weight_decay", weight_decay);
    f("momentum_decay", momentum_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("decoupled_weight_decay", decoupled_weight_decay);
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.NAdam rejects.
  void validate() const {
    check_not_negative("NAdam", "learning rate", lr);
    check_not_negative("NAdam", "epsilon value", eps);
    check_betas("NAdam", betas);
    check_not_negative("NAdam", "weight_decay value", weight_decay);
    check_not_negative("NAdam", "momentum_decay value", momentum_decay);
  }
};

/// Adam with Nesterov momentum (Dozat, 2016) as torch.optim.NAdam computes it with
/// foreach=True: the root of the averaged squares is taken before their bias is
/// corrected. Without foreach, its default on the CPU, torch takes it afterwards,
/// which overflows sooner: where the first gradient is so large that its square all
/// but overflows, a parameter stays there, and moves by about `lr` here.
class NAdam : public ListOptimizer<NAdamOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const NAdamOptions&) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"},
        {.name = "exp_avg_sq", .nonnegative = true},
        {"mu_product", 1, Rate::entry}};
    return specs;
  }

  void update(const NAdamOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_sqs = batch.states[1];
    const TensorList& mu_products = batch.states[2];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = decayed_gradients(
        batch, o.maximize, o.weight_decay, o.decoupled_weight_decay, o.lr);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);

    // One number per parameter.
    const TensorList bias_corrections2_sqrt =
        foreach_sqrt(foreach_sub(1.0, foreach_pow(beta2, batch.steps)));
    const TensorList mus = momentum_at(o, batch.steps);
    const TensorList next_mus = momentum_at(o, foreach_add(batch.steps, 1.0));
    foreach_mul_(mu_products, mus);

    const TensorList denominators = foreach_sqrt(exp_avg_sqs);
    foreach_div_(denominators, bias_corrections2_sqrt);
    foreach_add_(denominators, o.eps);
    foreach_addcdiv_(batch.params, grads, denominators,
                     step_sizes(o.lr, foreach_sub(1.0, mus), mu_products));
    foreach_addcdiv_(
        batch.params, exp_avgs, denominators,
        step_sizes(o.lr, next_mus, foreach_mul(mu_products, next_mus)));
  }

 private:
  // beta1 * (1 - 0.96^(step * momentum_decay) / 2), the momentum at a step.
  static TensorList momentum_at(const NAdamOptions& o,
                                const TensorList& steps) {
    const TensorList powers =
        foreach_pow(0.96, foreach_mul(steps, o.momentum_decay));
    return foreach_mul(o.betas[0], foreach_sub(1.0, foreach_mul(0.5, powers)));
  }

  // -lr * weight / (1 - product).
  static TensorList step_sizes(const Scalar& lr, const TensorList& weights,
                               const TensorList& products) {
    return foreach_neg(
        foreach_div(foreach_mul(lr, weights), foreach_sub(1.0, products)));
  }
};

}  // namespace fuse
