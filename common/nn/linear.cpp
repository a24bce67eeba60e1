#include <string>

#include "fusebook/nn/functional.h"
#include "fusebook/nn/matmul.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"

namespace fuse {
namespace {

void check_defined(const char* name, const Tensor& a, const Tensor& b) {
  if (a.defined() && b.defined()) return;
  throw Error(std::string(name) + ": an operand is undefined");
}

/// The product of two matrices in new memory.
Tensor product(const Tensor& a, const Tensor& b) {
  const bool matrices = a.dim() == 2 && b.dim() == 2;
  const Shape shape =
      matrices ? Shape{a.shape()[0], b.shape()[1]} : Shape{0, 0};
  const Tensor result = empty(shape, a.dtype(), a.device());
  matmul_into(result, a, b);
  return result;
}

/// As a matrix with one row per sample.
Tensor as_rows(const Tensor& tensor) {
  return tensor.dim() == 2 ? tensor
                           : tensor.contiguous().view({1, tensor.numel()});
}

/// The sums of the columns of a matrix: a product with ones.
Tensor sum_of_rows(const Tensor& matrix) {
  const Tensor ones =
      full({1, matrix.shape()[0]}, 1, matrix.dtype(), matrix.device());
  return product(ones, matrix).view({matrix.shape()[1]});
}

void check_linear(const Tensor& input, const Tensor& weight,
                  const Tensor& bias) {
  check_defined("linear", input, weight);
  const bool fits =
      (input.dim() == 1 || input.dim() == 2) && weight.dim() == 2 &&
      input.shape().back() == weight.shape()[1] &&
      (!bias.defined() || bias.shape() == Shape{weight.shape()[0]});
  if (fits) return;
  throw Error("linear: an input of shape " + to_string(input.shape()) +
              " does not fit a weight of shape " + to_string(weight.shape()) +
              (bias.defined()
                   ? " and a bias of shape " + to_string(bias.shape())
                   : ""));
}

Tensor run_linear(const Tensor& input, const Tensor& weight,
                  const Tensor& bias) {
  const NoGradGuard guard;
  Shape shape = input.shape();
  shape.back() = weight.shape()[0];
  const Tensor output = empty(shape, input.dtype(), input.device());
  const Tensor rows = as_rows(output);
  const bool biased = bias.defined();
  if (biased) Tensor(rows).copy_(bias);
  matmul_into(rows, as_rows(input), weight.t(), biased);
  return output;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_defined("matmul", a, b);
  return with_grad(product(a, b), {a, b},
                   [a = a.detach(), b = b.detach(), of_a = wants_grad(a),
                    of_b = wants_grad(b)](const Tensor& grad) -> Grads {
                     return {of_a ? product(grad, b.t()) : Tensor(),
                             of_b ? product(a.t(), grad) : Tensor()};
                   });
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_linear(input, weight, bias);
  const auto backward = [x = input.detach(), w = weight.detach(),
                         of_x = wants_grad(input), of_w = wants_grad(weight),
                         of_b = wants_grad(bias)](const Tensor& grad) {
    const Tensor rows = as_rows(grad);
    Grads grads(3);
    if (of_x) grads[0] = product(rows, w).view(x.shape());
    if (of_w) grads[1] = product(rows.t(), as_rows(x));
    if (of_b) grads[2] = sum_of_rows(rows);
    return grads;
  };
  return with_grad(run_linear(input, weight, bias), {input, weight, bias},
                   backward);
}

}  // namespace fuse
