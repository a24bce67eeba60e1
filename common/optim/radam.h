#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.RAdam, with its defaults.
struct RAdamOptions {
  Scalar lr = 1e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-8;          ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
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
  }
  template <class F>
  void for_each_flag(F f) {
    f("decoupled_weight_decay", decoupled_weight_decay);
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.RAdam rejects.
  void validate() const {
    check_not_negative("RAdam", "learning rate", lr);
    check_not_negative("RAdam", "epsilon value", eps);
    check_betas("RAdam", betas);
    check_not_negative("RAdam", "weight_decay value", weight_decay);
  }
};

/// Rectified Adam (Liu et al., 2020) as torch.optim.RAdam computes it: plain
/// momentum for the first steps, until the second moments can be trusted. With
/// eps = 0 a zero gradient leaves a parameter unchanged, as in torch's
/// single-tensor loop (torch's foreach version gives NaN).
class RAdam : public ListOptimizer<RAdamOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const RAdamOptions&) const override {
    static constexpr StateSpec specs[] = {
        {"exp_avg"}, {.name = "exp_avg_sq", .nonnegative = true}};
    return specs;
  }

  void update(const RAdamOptions& o, const Batch& batch) const override {
    const auto& [beta1, beta2] = o.betas;
    const TensorList& exp_avgs = batch.states[0];
    const TensorList& exp_avg_sqs = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = decayed_gradients(
        batch, o.maximize, o.weight_decay, o.decoupled_weight_decay, o.lr);

    foreach_lerp_(exp_avgs, grads, 1.0 - beta1);
    foreach_mul_(exp_avg_sqs, beta2);
    foreach_addcmul_(exp_avg_sqs, grads, grads, 1.0 - beta2);

    // One number per parameter.
    const Scalar length_limit = 2.0 / (1.0 - beta2) - 1.0;
    const TensorList powers2 = foreach_pow(beta2, batch.steps);
    const TensorList corrections2 = foreach_sub(1.0, powers2);
    const TensorList lengths = foreach_sub(
        length_limit,
        foreach_div(foreach_mul(foreach_mul(2.0, batch.steps), powers2),
                    corrections2));
    const TensorList corrections1 =
        foreach_sub(1.0, foreach_pow(beta1, batch.steps));
    const TensorList adaptive = foreach_neg(foreach_mul(
        foreach_sqrt(corrections2),
        foreach_div(foreach_mul(o.lr, rectification(lengths, length_limit)),
                    corrections1)));
    const TensorList plain = foreach_neg(foreach_div(o.lr, corrections1));

    const TensorList factors = foreach_sqrt(exp_avg_sqs);
    foreach_add_(factors, o.eps);
    foreach_div_(factors, adaptive);
    foreach_reciprocal_(factors);
    foreach_addcmul_(batch.params, exp_avgs,
                     foreach_where(foreach_gt(lengths, 5.0), factors, plain),
                     1.0);
  }

 private:
  // Meaningful only if the length of the average exceeds 4.
  static TensorList rectification(const TensorList& lengths,
                                  const Scalar& limit) {
    const TensorList numerators = foreach_mul(
        foreach_mul(foreach_sub(lengths, 4.0), foreach_sub(lengths, 2.0)),
        limit);
    const Scalar scale = (limit - 4.0) * (limit - 2.0);
    return foreach_sqrt(foreach_div(numerators, foreach_mul(scale, lengths)));
  }
};

}  // namespace fuse
