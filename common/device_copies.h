#pragma once

#include "tensor.h"

namespace fuse {

/// The elements of a tensor in host memory, with the strides it has: the tensor
/// itself if it lies there. Waits for the device.
Tensor on_host(const Tensor& tensor);

/// Writes what `on_host` gave, changed or not, back over the tensor on its
/// device; strides and dtype must still be the same.
void write_back(const Tensor& tensor, const Tensor& host);

/// A copy on another device, of the same strides; `tensor` is dense.
Tensor copy_to(const Tensor& tensor, const Device& device);

/// Copies elements between tensors of one shape of which at least one is on a
/// GPU, converting the dtype.
void copy_across(const Tensor& target, const Tensor& source);

/// Sets all elements of a tensor on a GPU.
void fill_on_device(const Tensor& target, double value);

}  // namespace fuse
