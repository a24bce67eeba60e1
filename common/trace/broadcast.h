#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/operands.h"

namespace fuse {

// Operands of one operation whose shapes differ broadcast as in torch: counted
// from the last dimension, sizes are equal, or one of them is 1 or missing. The
// smaller tensor is seen through strides of 0, its memory stays what it is.

/// The shapes of the tensors of a list.
struct ListShapes {
  std::vector<Shape> shapes;
  std::uint64_t hash = 0;  ///< see ListImpl
};
using SharedShapes = std::shared_ptr<const ListShapes>;

/// The shapes that the lists of elements among the operands broadcast to,
/// tensor by tensor. Throws Error naming the tensor, two operands and their
/// shapes where they do not. Kept: to ask again takes no time per tensor.
SharedShapes broadcast_shapes(const Callee& callee, Operands operands);

/// The shapes of operand `target`, which is written, where the others broadcast
/// to them. Throws Error where they do not, as an output is never broadcast.
SharedShapes target_shapes(const Callee& callee, Operands operands,
                           std::size_t target);

/// The same for an output that gets the result of a function, which is called
/// "result n".
void check_result(const Callee& callee, Operands operands, std::size_t output,
                  const TensorList& result);

/// A list of elements in memory in shapes that its own broadcast to: views of
/// its tensors, which the list keeps for the next time.
std::shared_ptr<ListImpl> broadcast_list(const std::shared_ptr<ListImpl>& list,
                                         const ListShapes& to);

}  // namespace fuse
