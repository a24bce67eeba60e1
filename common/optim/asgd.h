#pragma once

#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of torch.optim.ASGD, with its defaults.
struct ASGDOptions {
  Scalar lr = 1e-2;     ///< Learning rate.
  Scalar lambd = 1e-4;  ///< Decay of the parameters.
  Scalar alpha = 0.75;  ///< Power of the decay of the rate.
  /// The step after which averaging starts.
  Scalar t0 = 1e6;
  Scalar weight_decay = 0.0;  ///< Strength of the weight decay.
  bool maximize = false;      ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("lambd", lambd);
    f("alpha", alpha);
    f("t0", t0);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.ASGD rejects.
  void validate() const {
    check_not_negative("ASGD", "learning rate", lr);
    check_not_negative("ASGD", "lambd value", lambd);
    check_not_negative("ASGD", "alpha value", alpha);
    check_not_negative("ASGD", "weight_decay value", weight_decay);
  }
};

/// Averaged stochastic gradient descent (Polyak and Juditsky, 1992) as
/// torch.optim.ASGD computes it. The state "ax" holds the averages. A step uses
/// the rate "eta" and the weight "mu" computed by the previous step.
class ASGD : public ListOptimizer<ASGDOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const ASGDOptions&) const override {
    static constexpr StateSpec specs[] = {
        {"ax"},
        {.name = "eta", .rate = Rate::entry, .initial_from = "lr"},
        {"mu", 1, Rate::entry}};
    return specs;
  }

  void update(const ASGDOptions& o, const Batch& batch) const override {
    const TensorList& params = batch.params;
    const TensorList& axs = batch.states[0];
    const TensorList& etas = batch.states[1];
    const TensorList& mus = batch.states[2];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay);

    foreach_addcmul_(params, foreach_add_scaled(grads, params, o.lambd), etas,
                     -1.0);
    foreach_addcmul_(axs, foreach_sub(params, axs), mus, 1.0);

    // One number per parameter, for the next step.
    const TensorList growth =
        foreach_add(1.0, foreach_mul(o.lambd * o.lr, batch.steps));
    foreach_copy_(etas, foreach_div(o.lr, foreach_pow(growth, o.alpha)));
    foreach_copy_(mus, foreach_reciprocal(foreach_maximum(
                           foreach_sub(batch.steps, o.t0), 1.0)));
  }
};

}  // namespace fuse
