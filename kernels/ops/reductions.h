#pragma once

#include "fusebook/ops/ops.h"
#include "fusebook/prelude/reductions.h"

namespace fuse {

/// True for what makes one number of many elements: of those of a tensor, or of
/// those of all tensors of a list.
constexpr bool is_reduction(OpCode op) { return op >= OpCode::sum; }

/// True for one number of all tensors of a list.
constexpr bool is_total(OpCode op) { return op >= OpCode::total_sum; }

/// The reduction of a tensor that a reduction of a list begins with; that of a
/// tensor is itself.
constexpr OpCode per_tensor(OpCode op) {
  constexpr int apart = int(OpCode::total_sum) - int(OpCode::sum);
  return is_total(op) ? OpCode(int(op) - apart) : op;
}

/// The reduction of a list that begins with one of each tensor.
constexpr OpCode total_of(OpCode op) {
  return OpCode(int(op) + int(OpCode::total_sum) - int(OpCode::sum));
}

/// What the prelude calls a reduction of a tensor: "SumOfSquares".
const char* type_of_reduction(OpCode op);

/// Calls visit(how) with the struct of the prelude that a reduction of a tensor
/// is.
template <class Visit>
auto with_reduction(OpCode op, Visit visit) {
  switch (op) {
    case OpCode::sum:
      return visit(device::Sum());
    case OpCode::sum_of_squares:
      return visit(device::SumOfSquares());
    default:
      return visit(device::Amax());
  }
}

}  // namespace fuse
