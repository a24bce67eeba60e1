#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Sum of all elements as float64, in the order of sums.h: the same bits on
/// every device, for any number of threads. Reads the tensor where it lies; from
/// a GPU comes one number, which is waited for. Pending work is not run.
double sum_of(const Tensor& tensor);

/// Sum of (a - b)^2, likewise; differences and squares are float64. Shape, dtype
/// and device of both must be the same.
double sum_of_squared_differences(const Tensor& a, const Tensor& b);

}  // namespace fuse
