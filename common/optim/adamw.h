#pragma once

#include <utility>
#include <vector>

#include "fusebook/optim/adam.h"

namespace fuse {

/// Options of torch.optim.AdamW, with its defaults.
struct AdamWOptions {
  Scalar lr = 1e-3;                            ///< Learning rate.
  std::array<Scalar, 2> betas = {0.9, 0.999};  ///< Decays of the two averages.
  Scalar eps = 1e-8;           ///< Added to denominators for stability.
  Scalar weight_decay = 1e-2;  ///< Strength of the weight decay.
  bool amsgrad = false;        ///< Uses the maximum of the second average.
  bool maximize = false;       ///< Maximizes the objective.
  bool foreach = true;         ///< If false, updates one tensor at a time.

  /// AdamW is Adam with the decay decoupled from the gradients.
  AdamOptions as_adam() const {
    return {.lr = lr,
            .betas = betas,
            .eps = eps,
            .weight_decay = weight_decay,
            .amsgrad = amsgrad,
            .maximize = maximize,
            .decoupled_weight_decay = true,
            .foreach = foreach,
            .optimizer = "AdamW"};
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  /// A group of parameters with the options of AdamW.
  class Group : public Adam::Group {
   public:
    /// Takes all options from the optimizer it is added to.
    Group(std::vector<Tensor> tensors)  // NOLINT(google-explicit-constructor)
        : Adam::Group(std::move(tensors)) {}
    Group(NamedParams named)  // NOLINT(google-explicit-constructor)
        : Adam::Group(std::move(named)) {}
    Group(std::vector<Tensor> tensors, const AdamWOptions& wanted)
        : Adam::Group(std::move(tensors), wanted.as_adam()) {}
    Group(NamedParams named, const AdamWOptions& wanted)
        : Adam::Group(std::move(named), wanted.as_adam()) {}
  };

  /// The same as those of `ListOptimizer`.
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {})
      : Adam(std::move(params), options.as_adam()) {}
  explicit AdamW(NamedParams params, const AdamWOptions& options = {})
      : Adam(std::move(params), options.as_adam()) {}
  explicit AdamW(const std::vector<Group>& groups,
                 const AdamWOptions& options = {})
      : Adam(std::vector<Adam::Group>(groups.begin(), groups.end()),
             options.as_adam()) {}
};

}  // namespace fuse
