#pragma once

#include <cstdint>

#include "fusebook/tensor/tensor.h"

namespace fuse {

// Differentiable functions of tensors, with the names and formulas of torch and
// torch.nn.functional. They run immediately, on the device of the tensors, even
// while a function is being recorded, after any pending work on the tensors.
// They throw Error for arguments that do not fit.
// They throw Error for what does not fit.

/// The sum, difference or product of two tensors of the same dtype and device,
/// element by element; shapes broadcast.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);  ///< a - b, like `add`.
Tensor mul(const Tensor& a, const Tensor& b);  ///< a * b, like `add`.

Tensor relu(const Tensor& input);  ///< The maximum of each element and 0.
Tensor tanh(const Tensor& input);  ///< The hyperbolic tangent of each element.
Tensor sigmoid(const Tensor& input);  ///< 1 / (1 + exp(-x)) for each element x.

/// How `gelu` is computed: with the error function, or torch's
/// approximate="tanh".
enum class Gelu : std::uint8_t {
  exact,  ///< with the error function
  tanh,   ///< with torch's approximation
};
/// x * Phi(x) for each element x, with the normal distribution function Phi.
Tensor gelu(const Tensor& input, Gelu approximate = Gelu::exact);

/// exp(x) of each element, divided by the sum over dimension `dim`; a negative
/// `dim` counts from the end. Computed in float32 or float64, on the host: a
/// GPU tensor is copied there and back.
Tensor softmax(const Tensor& input, std::int64_t dim);
/// The logarithm of softmax, computed in the same way.
Tensor log_softmax(const Tensor& input, std::int64_t dim);

/// The product of two matrices; see matmul_into.
Tensor matmul(const Tensor& a, const Tensor& b);
/// input weight^T + bias: [in] or [batch, in] and [out, in] give [out] or
/// [batch, out]. The bias, of shape [out], may be undefined.
Tensor linear(const Tensor& input, const Tensor& weight,
              const Tensor& bias = Tensor());

/// Sets elements to 0 with probability `p`, from 0 to 1, and divides the others
/// by 1 - p. Element i is kept if the word i % 4 of philox(seed, offset, i /
/// 4), as a fraction, is below 1 - p, whatever the device and number of
/// threads.
Tensor dropout(const Tensor& input, double p, std::uint64_t seed,
               std::uint64_t offset);

}  // namespace fuse
