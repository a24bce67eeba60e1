#pragma once

#include "tensor.h"

namespace fuse {

/// The mean of the squared differences, like `torch.nn.functional.mse_loss`: a
/// 0-d tensor in host memory that leads back to `output`. It is summed in
/// float64, in the order of `Tensor::sum`, so it has the same bits everywhere; on
/// a GPU there, with gradients that stay there. A target on another device is
/// copied. Throws Error unless both have one shape and dtype and at least one
/// element.
Tensor mse_loss(const Tensor& output, const Tensor& target);

}  // namespace fuse
