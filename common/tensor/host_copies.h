#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Copies elements between tensors of one shape in host memory, converting the
/// dtype; they may share memory.
void copy_on_host(const TensorImpl& target, const TensorImpl& source);

/// Sets all elements of a tensor in host memory.
void fill_on_host(const TensorImpl& target, double value);

}  // namespace fuse
