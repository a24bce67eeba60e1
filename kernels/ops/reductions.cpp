#include "fusebook/ops/reductions.h"

namespace fuse {

const char* type_of_reduction(OpCode op) {
  switch (op) {
    case OpCode::sum:
      return "Sum";
    case OpCode::sum_of_squares:
      return "SumOfSquares";
    default:
      return "Amax";
  }
}

}  // namespace fuse
