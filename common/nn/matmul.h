#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// target = a b, or if `accumulate` target += a b, for matrices of one dtype,
/// float32 or float64, on one device; target must not share memory with a or b.
/// Views with contiguous rows or columns, such as transposes, are not copied.
/// Computed by gemm() in host memory and by cuBLAS on a GPU, or on the host if
/// cuBLAS is missing. Throws Error if shapes, dtypes or devices do not fit.
void matmul_into(const Tensor& target, const Tensor& a, const Tensor& b,
                 bool accumulate = false);

}  // namespace fuse
