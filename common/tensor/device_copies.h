#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A dense tensor in host memory, with the strides it has: itself if it lies
/// there, else a copy. Waits for the device.
Tensor on_host(const Tensor& tensor);

/// A copy on a device, of the same strides; `tensor` is dense.
Tensor copy_to(const Tensor& tensor, const Device& device);

/// Copies elements between tensors of one shape, converting the dtype; they may
/// share memory. Within a device no host memory is used; between devices go the
/// elements alone, in the smaller of the two dtypes.
void copy_into(const Tensor& target, const Tensor& source);

/// Sets all elements of a tensor, where it lies.
void fill_elements(const Tensor& target, double value);

}  // namespace fuse
