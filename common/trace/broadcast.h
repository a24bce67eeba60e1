#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/operands.h"

namespace fuse {

// Operands of one operation whose shapes differ broadcast as in torch: compared
// from the last dimension, sizes are equal, or one of them is 1 or missing. The
// smaller tensor is viewed with strides of 0; its memory is not copied.

/// The shapes of the tensors of a list.
struct ListShapes {
  std::vector<Shape> shapes;
  std::uint64_t hash = 0;  ///< see ListImpl
};
using SharedShapes = std::shared_ptr<const ListShapes>;

/// The shapes to which the element lists among the operands broadcast, tensor
/// by tensor. Throws Error naming the tensor, two operands and their shapes if
/// they do not. Cached: asking again takes no time per tensor.
SharedShapes broadcast_shapes(const Callee& callee, Operands operands);

/// The shapes of operand `target`, which is written, if the others broadcast to
/// them. Throws Error if they do not, since an output is never broadcast.
SharedShapes target_shapes(const Callee& callee, Operands operands,
                           std::size_t target);

/// The same for an output that receives the result of a function, called
/// "result n" in messages.
void check_result(const Callee& callee, Operands operands, std::size_t output,
                  const TensorList& result);

/// A list of elements in memory, broadcast to other shapes: views of its
/// tensors, which the list caches.
std::shared_ptr<ListImpl> broadcast_list(const std::shared_ptr<ListImpl>& list,
                                         const ListShapes& to);

}  // namespace fuse
