#pragma once

#include <span>
#include <string>
#include <vector>

#include "fusebook/runtime/bound_lists.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

// Lists over memory that they do not hold: others put tensors there and take
// them away. Who uses such a list sees to it that the memory is there whenever
// operations on it run.

/// The gradients of parameters, all of which have one. The parameters hold them,
/// the list does not: a gradient that is replaced is gone at once.
TensorList gradient_list(const TensorList& params, const char* label);

/// Brings such a list up to what the gradients are now, in a few nanoseconds a
/// tensor. Change::other means that they need another list: one is missing, or
/// has another dtype or other strides. Where somebody else still uses the list,
/// `grads` becomes another one.
Change follow_gradients(TensorList& grads);

/// Tensors like those of `shapes`, with their strides, at addresses of a caller.
/// Throws Error as `rebind`, that begins with the name of the `call`.
TensorList foreign_list(const TensorList& shapes,
                        std::span<void* const> addresses, const char* label,
                        const std::string& call, DType dtype);

/// Puts such a list elsewhere. Throws Error when there is not one address a
/// tensor, when one is null that has elements, or on a GPU not aligned to them.
void put_elsewhere(ListImpl& list, std::span<void* const> addresses);

/// The same for gradients, which a recording in progress may still need where
/// they were: `grads` becomes another list then. Throws Error on a GPU for an
/// address that is not aligned.
void follow_addresses(TensorList& grads, std::span<void* const> addresses);

/// Tensors in the places where those of such a list are now, for as long as they
/// are there.
std::vector<Tensor> places_of(const ListImpl& list);

/// The tensors of such a list. Throws Error for gradients that were replaced.
std::vector<Tensor> borrowed(const ListImpl& list);

}  // namespace fuse
