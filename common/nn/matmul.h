#pragma once

#include <span>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// target = a b, or if `accumulate` target += a b, for matrices of one dtype,
/// float32 or float64, on one device; target must not share memory with a or b.
/// Views with contiguous rows or columns, such as transposes, are not copied.
/// Computed by gemm() in host memory and by cuBLAS on a GPU, or on the host if
/// cuBLAS is missing. Throws Error if shapes, dtypes or devices do not fit.
void matmul_into(const Tensor& target, const Tensor& a, const Tensor& b,
                 bool accumulate = false);

/// The same for each i: targets[i] = a[i] b[i], or targets[i] += a[i] b[i], with
/// the same bits, but together: the threads share all of them, and cuBLAS is given
/// those of one shape at once. All have one dtype and one device, and no target
/// shares memory with anything else here. Throws Error, and writes nothing, if the
/// lists differ in length or a product does not fit.
void matmul_each_into(std::span<const Tensor> targets,
                      std::span<const Tensor> a, std::span<const Tensor> b,
                      bool accumulate = false);

}  // namespace fuse
