#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The mean of the squared differences, like `torch.nn.functional.mse_loss`: a
/// 0-d tensor in host memory that leads back to both. It is summed in float64, in
/// the order of `Tensor::sum`, so it has the same bits everywhere; on a GPU
/// there, with gradients that stay there. A target on another device is copied.
/// Throws Error unless both have one shape and dtype and at least one element.
Tensor mse_loss(const Tensor& output, const Tensor& target);

/// Minus the mean of input[i, target[i]] over all samples i, like
/// `torch.nn.functional.nll_loss`: a 0-d tensor in host memory. The input holds
/// logarithms of probabilities, [batch, classes], or [classes] for one sample;
/// the target a class for each sample. Samples whose class is `ignore_index` do
/// not count; where none is left the mean is NaN. Summed as float64 in order.
/// Throws Error for shapes that do not fit and classes that are not there.
Tensor nll_loss(const Tensor& input, const std::vector<std::int64_t>& target,
                std::int64_t ignore_index = -100);

/// nll_loss of the log_softmax of the input: the loss of a classifier whose
/// output is any numbers, of which the largest says the class. Large ones do not
/// overflow.
Tensor cross_entropy(const Tensor& input,
                     const std::vector<std::int64_t>& target,
                     std::int64_t ignore_index = -100);

}  // namespace fuse
