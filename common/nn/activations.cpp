#include <numbers>
#include <optional>
#include <string>
#include <utility>

#include "fusebook/nn/functional.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/autograd.h"
#include "fusebook/tensor/pointwise.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

void check_defined(const char* function, const Tensor& tensor) {
  if (tensor.defined()) return;
  throw Error(std::string(function) + ": the input is undefined");
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  return "shape " + to_string(tensor.shape()) + ", " + name_of(tensor.dtype()) +
         ", on " + to_string(tensor.device());
}

/// Both tensors in the shape they broadcast to.
std::pair<Tensor, Tensor> alike(const char* function, const Tensor& a,
                                const Tensor& b) {
  const bool one_kind = a.defined() && b.defined() && a.dtype() == b.dtype() &&
                        a.device() == b.device();
  if (one_kind && a.shape() == b.shape()) return {a, b};
  const auto shape =
      one_kind ? broadcast_shape(a.shape(), b.shape()) : std::nullopt;
  if (!shape) {
    throw Error(std::string(function) + ": the tensors differ: " + describe(a) +
                ", and " + describe(b));
  }
  return {a.expand(*shape), b.expand(*shape)};
}

/// A function of one tensor, and its gradient as a formula of (x, g).
Tensor apply(const char* name, const Tensor& input, const Formula& formula,
             Formula gradient) {
  check_defined(name, input);
  return with_grad(pointwise({input}, formula), {input},
                   [x = input.detach(), gradient = std::move(gradient)](
                       const Tensor& grad) -> Grads {
                     return {pointwise({x, grad}, gradient)};
                   });
}

/// The same, with the gradient as a formula of (y, g).
Tensor apply_by_output(const char* name, const Tensor& input,
                       const Formula& formula, Formula gradient) {
  check_defined(name, input);
  const Tensor output = pointwise({input}, formula);
  return with_grad(output, {input},
                   [y = output.detach(), gradient = std::move(gradient)](
                       const Tensor& grad) -> Grads {
                     return {pointwise({y, grad}, gradient)};
                   });
}

using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

/// The probability that a normal variable is below x, and its derivative.
Term normal_cdf(Term x) { return 0.5 * (1 + erf(x * (1 / sqrt2))); }
Term normal_pdf(Term x) { return exp(x * x * -0.5) * (inv_sqrtpi / sqrt2); }

Tensor gelu_by_erf(const Tensor& input) {
  return apply(
      "gelu", input, [](Terms t) { return t[0] * normal_cdf(t[0]); },
      [](Terms t) {
        return t[1] * (normal_cdf(t[0]) + t[0] * normal_pdf(t[0]));
      });
}

// The argument of tanh in the approximation, and its derivative.
constexpr double gelu_beta = sqrt2 * inv_sqrtpi;
constexpr double gelu_kappa = 0.044715;
Term inner(Term x) { return gelu_beta * (x + gelu_kappa * (x * x * x)); }
Term inner_slope(Term x) { return gelu_beta * (1 + 3 * gelu_kappa * (x * x)); }

Tensor gelu_by_tanh(const Tensor& input) {
  return apply(
      "gelu", input,
      [](Terms t) { return 0.5 * t[0] * (1 + tanh(inner(t[0]))); },
      [](Terms t) {
        const Term x = t[0];
        const Term curve = tanh(inner(x));
        const Term slope = (1 - curve * curve) * inner_slope(x);
        return t[1] * (0.5 * (1 + curve) + 0.5 * x * slope);
      });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  const auto [left, right] = alike("add", a, b);
  return with_grad(
      pointwise({left, right}, [](Terms t) { return t[0] + t[1]; }),
      {left, right}, [](const Tensor& grad) -> Grads { return {grad, grad}; });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  const auto [left, right] = alike("sub", a, b);
  return with_grad(
      pointwise({left, right}, [](Terms t) { return t[0] - t[1]; }),
      {left, right}, [](const Tensor& grad) -> Grads {
        return {grad, pointwise({grad}, [](Terms t) { return neg(t[0]); })};
      });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const auto [left, right] = alike("mul", a, b);
  const Formula product = [](Terms t) { return t[0] * t[1]; };
  return with_grad(
      pointwise({left, right}, product), {left, right},
      [product, a = left.detach(), b = right.detach(), of_a = wants_grad(left),
       of_b = wants_grad(right)](const Tensor& grad) -> Grads {
        return {of_a ? pointwise({grad, b}, product) : Tensor(),
                of_b ? pointwise({grad, a}, product) : Tensor()};
      });
}

Tensor relu(const Tensor& input) {
  return apply_by_output(
      "relu", input, [](Terms t) { return relu(t[0]); },
      [](Terms t) { return where(t[0] <= 0.0, 0.0, t[1]); });
}

Tensor tanh(const Tensor& input) {
  return apply_by_output(
      "tanh", input, [](Terms t) { return tanh(t[0]); },
      [](Terms t) { return t[1] * (1 - t[0] * t[0]); });
}

Tensor sigmoid(const Tensor& input) {
  return apply_by_output(
      "sigmoid", input, [](Terms t) { return sigmoid(t[0]); },
      [](Terms t) { return t[1] * (1 - t[0]) * t[0]; });
}

Tensor gelu(const Tensor& input, Gelu approximate) {
  if (approximate == Gelu::tanh) return gelu_by_tanh(input);
  // In 16 bits, 1 plus a negative erf loses too much precision.
  const bool reduced = input.defined() && is_reduced(input.dtype());
  return reduced ? gelu_by_erf(input.to(DType::float32)).to(input.dtype())
                 : gelu_by_erf(input);
}

}  // namespace fuse
