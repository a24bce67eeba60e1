#pragma once

#include <cstdint>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The mean of the squared differences, like `torch.nn.functional.mse_loss`: a
/// 0-d tensor in host memory, differentiable with respect to both. It is summed
/// in float64, in the order of `Tensor::sum`, so the bits are the same
/// everywhere; for GPU tensors it is computed on the GPU, where the gradients
/// stay. A target on another device is copied. Throws Error unless both have
/// the same shape and dtype and at least one element.
Tensor mse_loss(const Tensor& output, const Tensor& target);

/// The negated mean of input[i, target[i]] over all samples i, like
/// `torch.nn.functional.nll_loss`: a 0-d tensor in host memory. The input holds
/// log-probabilities, [batch, classes], or [classes] for one sample; the target
/// a class for each sample. Samples whose class is `ignore_index` do not count;
/// if none is left the mean is NaN. Summed in float64, in order. Throws Error
/// for shapes that do not fit and for invalid classes.
Tensor nll_loss(const Tensor& input, const std::vector<std::int64_t>& target,
                std::int64_t ignore_index = -100);

/// nll_loss of the log_softmax of the input: the loss of a classifier whose
/// outputs are arbitrary numbers, the largest of which selects the class. Large
/// outputs do not overflow.
Tensor cross_entropy(const Tensor& input,
                     const std::vector<std::int64_t>& target,
                     std::int64_t ignore_index = -100);

}  // namespace fuse
