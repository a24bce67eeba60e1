#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.Adagrad, with its defaults.
struct AdagradOptions {
  Scalar lr = 1e-2;           ///< Learning rate.
  Scalar lr_decay = 0.0;      ///< Decay of the rate, per step.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  /// Initial value of the sums of squares; read when a parameter gets its
  /// state.
  Scalar initial_accumulator_value = 0.0;
  Scalar eps = 1e-10;     ///< Added to denominators for stability.
  bool maximize = false;  ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("lr_decay", lr_decay);
    f("weight_decay", weight_decay);
    f("initial_accumulator_value", initial_accumulator_value);
    f("eps", eps);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.Adagrad rejects.
  void validate() const {
    check_not_negative("Adagrad", "learning rate", lr);
    check_not_negative("Adagrad", "lr_decay value", lr_decay);
    check_not_negative("Adagrad", "weight_decay value", weight_decay);
    check_not_negative("Adagrad", "initial_accumulator_value value",
                       initial_accumulator_value);
    check_not_negative("Adagrad", "epsilon value", eps);
  }
};

/// Adagrad (Duchi et al., 2011) as torch.optim.Adagrad computes it.
class Adagrad : public ListOptimizer<AdagradOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const AdagradOptions&) const override {
    static constexpr StateSpec specs[] = {
        {.name = "sum",
         .initial_from = "initial_accumulator_value",
         .nonnegative = true}};
    return specs;
  }

  void update(const AdagradOptions& o, const Batch& batch) const override {
    const TensorList& sums = batch.states[0];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);

    // One number per parameter.
    const TensorList decays = foreach_add(
        1.0, foreach_mul(foreach_sub(batch.steps, 1.0), o.lr_decay));
    const TensorList step_sizes = foreach_neg(foreach_div(o.lr, decays));

    foreach_addcmul_(sums, grads, grads, 1.0);
    const TensorList denominators = foreach_add(foreach_sqrt(sums), o.eps);
    foreach_addcdiv_(batch.params, foreach_mul(grads, step_sizes), denominators,
                     1.0);
  }
};

}  // namespace fuse
