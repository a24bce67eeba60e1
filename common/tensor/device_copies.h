#pragma once

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// A dense tensor in host memory, with the same strides: itself if it is there,
/// else a copy. Waits for the device.
Tensor on_host(const Tensor& tensor);

/// Copies a dense tensor to a device, with the same strides.
Tensor copy_to(const Tensor& tensor, const Device& device);

/// Copies elements between tensors of one shape, converting the dtype; they may
/// share memory. Copies within a device use no host memory; between devices
/// only the elements are transferred, in the smaller of the two dtypes.
void copy_into(const Tensor& target, const Tensor& source);

/// Sets all elements of a tensor, on its device.
void fill_elements(const Tensor& target, double value);

}  // namespace fuse
