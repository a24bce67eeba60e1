// The worked example of CONTRIBUTING.md: an optimizer of one's own.
#pragma once

#include <array>
#include <span>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"

namespace fuse {

/// Options of Lion; every number may also be a 0-d tensor.
struct LionOptions {
  Scalar lr = 1e-4;
  std::array<Scalar, 2> betas = {0.9, 0.99};
  Scalar weight_decay = 0.0;
  bool maximize = false;
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("betas", betas);
    f("weight_decay", weight_decay);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  void validate() const {
    check_not_negative("Lion", "learning rate", lr);
    check_betas("Lion", betas);
    check_not_negative("Lion", "weight_decay value", weight_decay);
  }
};

/// Lion (Chen and others, 2023): steps of one size, along the sign of a mean.
class Lion : public ListOptimizer<LionOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const LionOptions&) const override {
    static constexpr StateSpec specs[] = {{"exp_avg"}};
    return specs;
  }

  void update(const LionOptions& o, const Batch& batch) const override {
    const TensorList& exp_avgs = batch.states[0];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads =
        decayed_gradients(batch, o.maximize, o.weight_decay, true, o.lr);

    const TensorList means = foreach_lerp(exp_avgs, grads, 1.0 - o.betas[0]);
    foreach_sub_scaled_(batch.params, foreach_sign(means), o.lr);
    foreach_lerp_(exp_avgs, grads, 1.0 - o.betas[1]);
  }
};

}  // namespace fuse
