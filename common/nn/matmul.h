#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// target = a b, or with `accumulate` target += a b, for matrices of one dtype,
/// float32 or float64, on one device; target shares no memory with them. Views
/// whose rows or columns lie side by side, such as transposed ones, are not
/// copied. In host memory by gemm(), on a GPU by cuBLAS, or where that is
/// missing on the host. Throws Error when shapes, dtypes or devices do not fit.
void matmul_into(const Tensor& target, const Tensor& a, const Tensor& b,
                 bool accumulate = false);

}  // namespace fuse
