#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fusebook/ir/program.h"
#include "fusebook/layout/memory_overlap.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The strides of a tensor of this shape in row-major order.
Shape row_major_strides(const Shape& shape);

/// The shape that two shapes broadcast to, as in torch; nothing if
/// they do not.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// Sizes and strides of a tensor; valid as long as it lives.
Layout layout_of(const TensorImpl& impl);

/// Gives a tensor that has its shape and size the strides of its dimensions.
void set_strides(TensorImpl& impl, Shape strides);

/// True when the elements lie side by side in row-major order. Where a
/// dimension of size 1 would lead does not matter.
inline bool is_contiguous(const TensorImpl& impl) { return impl.contiguous; }

/// True when the elements lie side by side in some order of the dimensions.
bool is_dense(const TensorImpl& impl);

/// Bytes from the first element of a tensor to behind its last one.
std::size_t extent_bytes(const TensorImpl& impl);

/// The bytes of a tensor.
Region region_of(const TensorImpl& impl);

/// True when two tensors have a byte in common; see overlap(Region, Region).
bool share_bytes(const TensorImpl& a, const TensorImpl& b);

/// Throws Error naming `what` when several elements of a tensor that is stored
/// into share memory.
void check_storable(const TensorImpl& impl, const char* what);

/// True when expand has repeated elements of a tensor.
bool has_repeats(const TensorImpl& impl);

/// The tensor with each element once that expand repeats: the same memory.
Tensor without_repeats(const Tensor& tensor);

/// Copies all elements between tensors of one shape and dtype that do not
/// overlap.
void copy_elements(const TensorImpl& target, const TensorImpl& source);

/// Copies one element, at any address, into all elements of a tensor.
void copy_to_all(const TensorImpl& target, const void* element);

/// The same elements in the same memory, and nothing else of the tensor: no
/// gradient, no way back.
std::shared_ptr<TensorImpl> bare(const TensorImpl& tensor);

}  // namespace fuse
