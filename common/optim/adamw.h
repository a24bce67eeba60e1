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
            .foreach = foreach};
  }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {})
      : Adam(std::move(params), options.as_adam()) {}
};

}  // namespace fuse
