#pragma once

#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// True for the plain number 0, whose operations are skipped. A 0-d tensor may
/// have another value at the next step, so its operations always run.
bool is_off(const Scalar& scalar);

/// The gradients of a batch, negated if `maximize`.
TensorList signed_gradients(const Batch& batch, bool maximize);

/// The same, plus `weight_decay` times the parameters (an L2 penalty).
TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay);

/// As above or, if `decoupled`, the gradients without a penalty, with the
/// parameters scaled at once by 1 - lr * weight_decay.
TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay, bool decoupled,
                             const Scalar& lr);

}  // namespace fuse
