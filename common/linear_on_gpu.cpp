#include "linear_on_gpu.h"

#include <algorithm>

namespace fuse {
namespace {

// A row-major matrix of `columns` columns, as the product sees it: transposed,
// since cuBLAS counts columns first.
CublasMatrix matrix(const Tensor& tensor, std::int64_t columns,
                    bool transposed = false) {
  return {tensor.address(false), std::max<std::int64_t>(columns, 1),
          transposed};
}

// As many ones as there are rows: a product with them sums or repeats.
Tensor ones(const LinearSizes& sizes, const Tensor& like) {
  return full({sizes.batch}, 1, like.dtype(), like.device());
}

}  // namespace

// output' (out x batch) = weight (out x in) * input' (in x batch)
void linear_forward_on(const Cublas& blas, const LinearSizes& sizes,
                       const Tensor& input, const Tensor& weight,
                       const Tensor& bias, const Tensor& output) {
  if (output.numel() == 0) return;
  blas.multiply(output.dtype(), {sizes.out, sizes.batch, sizes.in},
                matrix(weight, sizes.in, true), matrix(input, sizes.in),
                {output.address(true), sizes.out});
  if (!bias.defined()) return;
  const Tensor repeat = ones(sizes, output);
  blas.multiply(output.dtype(), {sizes.out, sizes.batch, 1},
                matrix(bias, sizes.out), matrix(repeat, 1),
                {output.address(true), sizes.out, true});
}

// grad_input' (in x batch) = weight' (in x out) * grad_output' (out x batch)
void linear_grad_input_on(const Cublas& blas, const LinearSizes& sizes,
                          const Tensor& grad_output, const Tensor& weight,
                          const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  blas.multiply(grad_input.dtype(), {sizes.in, sizes.batch, sizes.out},
                matrix(weight, sizes.in), matrix(grad_output, sizes.out),
                {grad_input.address(true), sizes.in});
}

// grad' (in x out) = input' (in x batch) * grad_output (batch x out)
void linear_grad_weight_on(const Cublas& blas, const LinearSizes& sizes,
                           const Tensor& grad_output, const Tensor& input,
                           bool accumulate, const Tensor& grad) {
  if (grad.numel() == 0) return;
  blas.multiply(grad.dtype(), {sizes.in, sizes.out, sizes.batch},
                matrix(input, sizes.in), matrix(grad_output, sizes.out, true),
                {grad.address(true), sizes.in, accumulate});
}

// grad (out x 1) = grad_output' (out x batch) * ones (batch x 1)
void linear_grad_bias_on(const Cublas& blas, const LinearSizes& sizes,
                         const Tensor& grad_output, bool accumulate,
                         const Tensor& grad) {
  if (grad.numel() == 0) return;
  const Tensor sum = ones(sizes, grad);
  blas.multiply(grad.dtype(), {sizes.out, 1, sizes.batch},
                matrix(grad_output, sizes.out), matrix(sum, sizes.batch),
                {grad.address(true), sizes.out, accumulate});
}

}  // namespace fuse
