#pragma once

#include <source_location>
#include <vector>

#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/scalar.h"

namespace fuse {

// torch.nn.utils.clip_grad: names, arguments and formulas are torch's. Norms are
// float64 numbers. Inside `compile` all of it is recorded, so that clipping and
// the optimizer's step after it are one launch; the gradients then are read
// twice, once for the norm and once for the step. Only `error_if_nonfinite` has
// to wait for the norm, which breaks the graph.

/// The norm of all elements of the tensors together, of any dtypes; 0 if there
/// are none. With `error_if_nonfinite`, throws Error if it is infinite or NaN.
/// Throws Error like `total_norm`.
[[nodiscard]] Scalar get_total_norm(
    const std::vector<Tensor>& tensors, double norm_type = 2.0,
    bool error_if_nonfinite = false,
    std::source_location place = std::source_location::current());

/// Multiplies the gradients of the parameters by
/// `max_norm / (total_norm + 1e-6)`, or by 1 if that is more. Parameters without
/// a gradient are passed over.
void clip_grads_with_norm_(
    const std::vector<Tensor>& parameters, const Scalar& max_norm,
    const Scalar& total_norm,
    std::source_location place = std::source_location::current());

/// Scales the gradients of the parameters, seen as one vector, so that its norm
/// is at most `max_norm`; returns the norm before. Throws Error like
/// `get_total_norm`; nothing has been changed then.
Scalar clip_grad_norm_(
    const std::vector<Tensor>& parameters, const Scalar& max_norm,
    double norm_type = 2.0, bool error_if_nonfinite = false,
    std::source_location place = std::source_location::current());

/// Clamps each element of the gradients of the parameters to
/// [-clip_value, clip_value]. Parameters without a gradient are passed over.
void clip_grad_value_(
    const std::vector<Tensor>& parameters, const Scalar& clip_value,
    std::source_location place = std::source_location::current());

}  // namespace fuse
