#include "fusebook/optim_base/gradients.h"

#include "fusebook/foreach/foreach.h"

namespace fuse {

bool is_off(const Scalar& scalar) {
  return !scalar.is_tensor() && scalar.is_zero();
}

TensorList signed_gradients(const Batch& batch, bool maximize) {
  return maximize ? foreach_neg(batch.grads) : batch.grads;
}

TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay) {
  TensorList grads = signed_gradients(batch, maximize);
  if (is_off(weight_decay)) return grads;
  return foreach_add_scaled(grads, batch.params, weight_decay);
}

TensorList decayed_gradients(const Batch& batch, bool maximize,
                             const Scalar& weight_decay, bool decoupled,
                             const Scalar& lr) {
  if (!decoupled) return decayed_gradients(batch, maximize, weight_decay);
  TensorList grads = signed_gradients(batch, maximize);
  if (!is_off(weight_decay)) {
    foreach_mul_(batch.params, 1.0 - lr * weight_decay);
  }
  return grads;
}

}  // namespace fuse
