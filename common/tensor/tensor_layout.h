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

/// The number of elements. Throws Error for negative sizes, and if their bytes
/// exceed 64 bits.
std::int64_t checked_numel(const Shape& shape, DType dtype);

/// Throws Error naming `who` for elements in blocks, which are no numbers of their
/// own.
void check_numbers(const char* who, DType dtype);

/// The shape to which two shapes broadcast, as in torch, or nullopt.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// Sizes and strides of a tensor; valid while the tensor lives.
Layout layout_of(const TensorImpl& impl);

/// Sets the strides of a tensor whose shape and size are set.
void set_strides(TensorImpl& impl, Shape strides);

/// True if the elements are adjacent in row-major order. The strides of
/// dimensions of size 1 do not matter.
inline bool is_contiguous(const TensorImpl& impl) { return impl.contiguous; }

/// True if the elements are adjacent in some order of the dimensions.
bool is_dense(const TensorImpl& impl);

/// Bytes from the first element of a tensor to one past the last.
std::size_t extent_bytes(const TensorImpl& impl);

/// The bytes of a tensor.
Region region_of(const TensorImpl& impl);

/// True if two tensors share a byte; see overlap(Region, Region).
bool share_bytes(const TensorImpl& a, const TensorImpl& b);

/// Throws Error naming `what` if elements of a tensor that is stored to share
/// memory.
void check_storable(const TensorImpl& impl, const char* what);

/// True if expand has repeated elements of the tensor.
bool has_repeats(const TensorImpl& impl);

/// The tensor without the repeats of expand: the same memory.
Tensor without_repeats(const Tensor& tensor);

/// Copies all elements between tensors of one shape and dtype that do not
/// overlap.
void copy_elements(const TensorImpl& target, const TensorImpl& source);

/// Copies one element, at any address, into all elements of a tensor.
void copy_to_all(const TensorImpl& target, const void* element);

/// The same elements in the same memory, without gradient or graph.
std::shared_ptr<TensorImpl> bare(const TensorImpl& tensor);

}  // namespace fuse
