#pragma once

#include <utility>
#include <vector>

#include "optim/adam.h"

namespace fuse {

/// Options of torch.optim.AdamW, with its defaults.
struct AdamWOptions {
  Scalar lr = 1e-3;
  std::array<Scalar, 2> betas = {0.9, 0.999};
  Scalar eps = 1e-8;
  Scalar weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  bool foreach = true;

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
  class Group : public Adam::Group {
   public:
    /// Takes all options of the optimizer that it is given to.
    Group(std::vector<Tensor> tensors)  // NOLINT(google-explicit-constructor)
        : Adam::Group(std::move(tensors)) {}
    Group(NamedParams named)  // NOLINT(google-explicit-constructor)
        : Adam::Group(std::move(named)) {}
    Group(std::vector<Tensor> tensors, const AdamWOptions& wanted)
        : Adam::Group(std::move(tensors), wanted.as_adam()) {}
    Group(NamedParams named, const AdamWOptions& wanted)
        : Adam::Group(std::move(named), wanted.as_adam()) {}
  };

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
