#pragma once

#include <span>
#include <string>
#include <vector>

#include "fusebook/runtime/bound_lists.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

// Lists over memory that they do not hold: others create and free the tensors.
// The user of such a list must ensure that the memory exists whenever
// operations on it run.

/// The gradients of parameters, all of which must have one. The parameters hold
/// them, the list does not: a gradient that is replaced is freed at once.
TensorList gradient_list(const TensorList& params, const char* label);

/// Updates such a list to the current gradients, in a few nanoseconds per
/// tensor. Change::other means that a new list is needed: a gradient is
/// missing, or has another dtype or other strides. If the list is still in use
/// elsewhere, `grads` becomes a new one.
Change follow_gradients(TensorList& grads);
/// The same through a second handle, beside the one of whoever keeps the list.
Change follow_kept_gradients(TensorList& grads);

/// Tensors like those of `shapes`, with their strides, at addresses supplied by
/// a caller. Throws Error like `rebind`, with a message that starts with
/// `call`.
TensorList foreign_list(const TensorList& shapes,
                        std::span<void* const> addresses, const char* label,
                        const std::string& call, DType dtype);

/// Where the elements of tensors like those of `shapes` stand, in row-major order:
/// the first element of each at the place that is given for it. It is in no memory;
/// kernels draw random bits for it (OpCode::draw).
TensorList position_list(const TensorList& shapes,
                         std::span<const std::int64_t> first,
                         const char* label);

/// Moves such a list to other addresses. Throws Error unless there is one
/// address per tensor, if the address of a non-empty tensor is null or, on a
/// GPU, not aligned to its elements.
void put_elsewhere(ListImpl& list, std::span<void* const> addresses);

/// The same for gradients whose old addresses a recording in progress may still
/// need: then `grads` becomes a new list. On a GPU, throws Error for an address
/// that is not aligned.
void follow_addresses(TensorList& grads, std::span<void* const> addresses);

/// Tensors at the current addresses of such a list, valid as long as the memory
/// is.
std::vector<Tensor> places_of(const ListImpl& list);

/// The tensors of such a list. Throws Error if gradients have been replaced.
std::vector<Tensor> borrowed(const ListImpl& list);

}  // namespace fuse
