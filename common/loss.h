#pragma once

#include "tensor.h"

namespace fuse {

/// The mean of the squared differences, like `torch.nn.functional.mse_loss`: a
/// 0-d tensor that leads back to `output`. It is summed in float64, element by
/// element, so it has the same bits everywhere. Throws Error unless both have
/// one shape and dtype and at least one element.
Tensor mse_loss(const Tensor& output, const Tensor& target);

}  // namespace fuse
