// What an operation gives for one element, computed by plain scalar code: the
// expression of its row and nothing around it.
#pragma once

#include <array>

#include "fusebook/ops/dtype.h"
#include "fusebook/ops/ops.h"
#include "fusebook/prelude/halves.h"
#include "fusebook/prelude/host_math.h"
#include "fusebook/prelude/math.h"
#include "support/reduced.h"

namespace fuse::device {

inline const Calls* calls = &host_calls;

}  // namespace fuse::device

namespace reference {

namespace math = fuse::device::math;

#define REFERENCE_PARAMETERS_1 T a
#define REFERENCE_PARAMETERS_2 T a, T b
#define REFERENCE_PARAMETERS_3 T a, T b, T c
#define REFERENCE_PARAMETERS_4 T a, T b, T c, T d
#define REFERENCE_CALL_1 x[0]
#define REFERENCE_CALL_2 x[0], x[1]
#define REFERENCE_CALL_3 x[0], x[1], x[2]
#define REFERENCE_CALL_4 x[0], x[1], x[2], x[3]

#define OP(name, arity, expression, ...)      \
  template <class T>                          \
  T op_##name(REFERENCE_PARAMETERS_##arity) { \
    return expression;                        \
  }
#include "fusebook/ops/ops.def"
#undef OP

/// The operation on operands that are rounded to `T` first.
template <class T>
T apply(fuse::OpCode op, const std::array<double, 4>& operands) {
  std::array<T, 4> x;
  for (std::size_t k = 0; k < 4; ++k) x[k] = T(operands[k]);
  switch (op) {
#define OP(name, arity, ...) \
  case fuse::OpCode::name:   \
    return op_##name<T>(REFERENCE_CALL_##arity);
#include "fusebook/ops/ops.def"
#undef OP
    default:
      return T(0);
  }
}

/// The same in the type of a tensor, as a double: what 16 bits store is
/// computed as float and rounded once more.
inline double apply(fuse::OpCode op, fuse::DType dtype,
                    const std::array<double, 4>& operands) {
  if (dtype == fuse::DType::float64) return apply<double>(op, operands);
  return reduced::round(dtype, double(apply<float>(op, operands)));
}

#undef REFERENCE_PARAMETERS_1
#undef REFERENCE_PARAMETERS_2
#undef REFERENCE_PARAMETERS_3
#undef REFERENCE_PARAMETERS_4
#undef REFERENCE_CALL_1
#undef REFERENCE_CALL_2
#undef REFERENCE_CALL_3
#undef REFERENCE_CALL_4

}  // namespace reference
