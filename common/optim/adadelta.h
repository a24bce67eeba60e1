#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.Adadelta, with its defaults.
struct AdadeltaOptions {
  Scalar lr = 1.0;            ///< Learning rate.
  Scalar rho = 0.9;           ///< Decay of the averages.
  Scalar eps = 1e-6;          ///< Added to denominators for stability.
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool maximize = false;      ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("rho", rho);
    f("eps", eps);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.Adadelta rejects.
  void validate() const {
    check_not_negative("Adadelta", "learning rate", lr);
    check_argument("Adadelta", "rho value", rho,
                   rho.value() >= 0 && rho.value() <= 1);
    check_not_negative("Adadelta", "epsilon value", eps);
    check_not_negative("Adadelta", "weight_decay value", weight_decay);
  }
};

/// Adadelta (Zeiler, 2012) as torch.optim.Adadelta computes it.
class Adadelta : public ListOptimizer<AdadeltaOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(
      const AdadeltaOptions&) const override {
    static constexpr StateSpec specs[] = {
        {.name = "square_avg", .nonnegative = true},
        {.name = "acc_delta", .nonnegative = true}};
    return specs;
  }

  void update(const AdadeltaOptions& o, const Batch& batch) const override {
    const TensorList& square_avgs = batch.states[0];
    const TensorList& acc_deltas = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);

    foreach_mul_(square_avgs, o.rho);
    foreach_addcmul_(square_avgs, grads, grads, 1.0 - o.rho);
    const TensorList deltas = foreach_sqrt(foreach_add(acc_deltas, o.eps));
    foreach_div_(deltas, foreach_sqrt(foreach_add(square_avgs, o.eps)));
    foreach_mul_(deltas, grads);

    foreach_mul_(acc_deltas, o.rho);
    foreach_addcmul_(acc_deltas, deltas, deltas, 1.0 - o.rho);
    foreach_sub_scaled_(batch.params, deltas, o.lr);
  }
};

}  // namespace fuse
