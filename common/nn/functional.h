#pragma once

#include <cstdint>

#include "fusebook/tensor/tensor.h"

namespace fuse {

// Functions of tensors through which gradients go back, with the names and
// formulas of torch and torch.nn.functional. All run at once, where the tensors
// lie, also while a function is being recorded, after what is pending for them.
// They throw Error for what does not fit.

/// The sum, difference or product of two tensors of one dtype and device, element
/// by element; their shapes broadcast.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);  ///< a - b, as `add`.
Tensor mul(const Tensor& a, const Tensor& b);  ///< a * b, as `add`.

Tensor relu(const Tensor& input);  ///< The larger of an element and 0.
Tensor tanh(const Tensor& input);  ///< The hyperbolic tangent of each element.
Tensor sigmoid(const Tensor& input);  ///< 1 / (1 + exp(-x)) of each element x.

/// How `gelu` is computed: by the error function, or by torch's
/// approximate="tanh".
enum class Gelu : std::uint8_t {
  exact,  ///< by the error function
  tanh,   ///< by torch's approximation
};
/// x times the normal distribution's share below x, of each element x.
Tensor gelu(const Tensor& input, Gelu approximate = Gelu::exact);

/// exp(x) of each element, divided by the sum over dimension `dim`; it may count
/// from the end. In float32 or float64, on the host: a tensor on a GPU is copied
/// there and back.
Tensor softmax(const Tensor& input, std::int64_t dim);
/// The logarithm of that, likewise.
Tensor log_softmax(const Tensor& input, std::int64_t dim);

/// The product of two matrices; see matmul_into.
Tensor matmul(const Tensor& a, const Tensor& b);
/// input weight^T + bias: [in] or [batch, in] and [out, in] give [out] or
/// [batch, out]. The bias, [out], may be undefined.
Tensor linear(const Tensor& input, const Tensor& weight,
              const Tensor& bias = Tensor());

/// Elements become 0 with probability `p`, from 0 to 1, and are divided by 1 - p
/// else. Element i stays when the word i % 4 of philox(seed, offset, i / 4), as
/// a fraction, is below 1 - p: whatever the device and the number of threads.
Tensor dropout(const Tensor& input, double p, std::uint64_t seed,
               std::uint64_t offset);

}  // namespace fuse
