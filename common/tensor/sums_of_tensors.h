#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Sum of all elements as float64, in the order of sums.h: the same bits on
/// every device, for any number of threads. Reads the tensor in place; from a
/// GPU only the result is copied, and waited for. Does not run pending work.
double sum_of(const Tensor& tensor);

/// Sum of (a - b)^2, in the same way; differences and squares are float64. Both
/// must have the same shape, dtype and device.
double sum_of_squared_differences(const Tensor& a, const Tensor& b);

}  // namespace fuse
