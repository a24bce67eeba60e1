#pragma once

#include <array>
#include <span>
#include <string>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/gradients.h"
#include "fusebook/optim_base/list_optimizer.h"
#include "fusebook/optim_base/validate.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

/// Options of torch.optim.Rprop, with its defaults.
struct RpropOptions {
  /// The initial step size; read when a parameter gets its state.
  Scalar lr = 1e-2;
  /// Factors by which step sizes shrink and grow.
  std::array<Scalar, 2> etas = {0.5, 1.2};
  /// The smallest and the largest step size.
  std::array<Scalar, 2> step_sizes = {1e-6, 50.0};
  bool maximize = false;  ///< Maximizes the objective.
  /// If false, updates one tensor at a time.
  bool foreach = true;

  template <class F>
  void for_each_scalar(F f) {
    f("lr", lr);
    f("etas", etas);
    f("step_sizes", step_sizes);
  }
  template <class F>
  void for_each_flag(F f) {
    f("maximize", maximize);
  }

  /// Throws Error for anything torch.optim.Rprop rejects.
  void validate() const {
    check_not_negative("Rprop", "learning rate", lr);
    const double shrink = etas[0].value();
    const double grow = etas[1].value();
    if (0 < shrink && shrink < 1 && 1 < grow) return;
    throw Error("Rprop: invalid eta values: " + number_text(shrink) + ", " +
                number_text(grow) +
                "; the first must be between 0 and 1, the second above 1");
  }
};

/// Resilient backpropagation (Riedmiller and Braun, 1993) as torch.optim.Rprop
/// computes it: only the signs of the gradients matter.
class Rprop : public ListOptimizer<RpropOptions> {
 public:
  using ListOptimizer::ListOptimizer;

 protected:
  std::span<const StateSpec> state_specs(const RpropOptions&) const override {
    static constexpr StateSpec specs[] = {
        {"prev"},
        {.name = "step_size", .initial_from = "lr", .nonnegative = true}};
    return specs;
  }

  void update(const RpropOptions& o, const Batch& batch) const override {
    const TensorList& prevs = batch.states[0];
    const TensorList& step_sizes = batch.states[1];
    foreach_add_(batch.steps, 1.0);
    const TensorList grads = signed_gradients(batch, o.maximize);

    const TensorList agreement = foreach_mul(grads, prevs);
    const TensorList turned = foreach_lt(agreement, 0.0);
    foreach_mul_(step_sizes,
                 foreach_where(foreach_gt(agreement, 0.0), o.etas[1],
                               foreach_where(turned, o.etas[0], 1.0)));
    foreach_clamp_(step_sizes, o.step_sizes[0], o.step_sizes[1]);

    // Where the sign has flipped, skip this step and the next comparison.
    foreach_copy_(prevs, foreach_where(turned, 0.0, grads));
    foreach_addcmul_(batch.params, foreach_sign(prevs), step_sizes, -1.0);
  }
};

}  // namespace fuse
