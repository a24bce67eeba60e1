#pragma once

#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// True for a plain number 0, whose operations are left out. A 0-d tensor may
/// have another value at the next step, so what it does is always computed.
bool is_off(const Scalar& scalar);

/// The gradients of a batch with the sign that `maximize` asks for.
TensorList signed_gradients(const Batch& batch, bool maximize);

/// The same plus `weight_decay` times the parameters (an L2 penalty).
TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay);

/// Either that or, with `decoupled`, the gradients without a penalty; the
/// parameters then shrink by the factor 1 - lr * weight_decay at once.
TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay, bool decoupled,
                             const Scalar& lr);

}  // namespace fuse
