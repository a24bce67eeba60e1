#pragma once

#include "cublas.h"
#include "linear_kernels.h"
#include "tensor.h"

namespace fuse {

// The Linear layer as matrix products on a device; what each computes is said
// in linear_kernels.h. All tensors are contiguous, of one dtype, float32 or
// float64, and lie on the device. The order of the sums is cuBLAS's own.

/// `bias` may be undefined.
void linear_forward_on(const Cublas& blas, const LinearSizes& sizes,
                       const Tensor& input, const Tensor& weight,
                       const Tensor& bias, const Tensor& output);
void linear_grad_input_on(const Cublas& blas, const LinearSizes& sizes,
                          const Tensor& grad_output, const Tensor& weight,
                          const Tensor& grad_input);
void linear_grad_weight_on(const Cublas& blas, const LinearSizes& sizes,
                           const Tensor& grad_output, const Tensor& input,
                           bool accumulate, const Tensor& grad);
void linear_grad_bias_on(const Cublas& blas, const LinearSizes& sizes,
                         const Tensor& grad_output, bool accumulate,
                         const Tensor& grad);

}  // namespace fuse
