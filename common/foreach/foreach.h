#pragma once

#include <source_location>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// Applies one row of ops.def to lists; numbers apply to every tensor of a
/// list. Recorded inside `compile`, run at once outside. All lists must have
/// the same length and must not have been moved from, and their tensors' shapes
/// must broadcast as in torch; otherwise throws Error naming the operands and
/// the place. Mixed dtypes promote as in torch; numbers, per-tensor values and
/// 0-d tensors beside others never affect the result dtype. Each `foreach_<op>`
/// function is this for one operation.
TensorList foreach_apply(OpCode op, Operands operands,
                         std::source_location place);
/// The same, with the result written into `target` and rounded to its dtype.
/// Throws Error if the tensors of `target` would have to be broadcast.
void foreach_apply_(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place);

#define FUSE_HERE std::source_location place = std::source_location::current()

// foreach_<op>(operands...) returns new lists; foreach_<op>_(list, ...) writes
// into its first operand, like torch._foreach_<op> and torch._foreach_<op>_.
#define FUSE_FOREACH_1(name)                                       \
  [[nodiscard]] inline TensorList foreach_##name(const Operand& a, \
                                                 FUSE_HERE) {      \
    const Operand* const in[] = {&a};                              \
    return foreach_apply(OpCode::name, in, place);                 \
  }
#define FUSE_FOREACH_2(name)                           \
  [[nodiscard]] inline TensorList foreach_##name(      \
      const Operand& a, const Operand& b, FUSE_HERE) { \
    const Operand* const in[] = {&a, &b};              \
    return foreach_apply(OpCode::name, in, place);     \
  }
#define FUSE_FOREACH_3(name)                                             \
  [[nodiscard]] inline TensorList foreach_##name(                        \
      const Operand& a, const Operand& b, const Operand& c, FUSE_HERE) { \
    const Operand* const in[] = {&a, &b, &c};                            \
    return foreach_apply(OpCode::name, in, place);                       \
  }
#define FUSE_FOREACH_4(name)                                                  \
  [[nodiscard]] inline TensorList foreach_##name(                             \
      const Operand& a, const Operand& b, const Operand& c, const Operand& d, \
      FUSE_HERE) {                                                            \
    const Operand* const in[] = {&a, &b, &c, &d};                             \
    return foreach_apply(OpCode::name, in, place);                            \
  }
#define FUSE_FOREACH_INTO_1(name)                                    \
  inline void foreach_##name##_(const TensorList& list, FUSE_HERE) { \
    const Operand a(list);                                           \
    const Operand* const in[] = {&a};                                \
    foreach_apply_(OpCode::name, list, in, place);                   \
  }
#define FUSE_FOREACH_INTO_2(name)                                         \
  inline void foreach_##name##_(const TensorList& list, const Operand& b, \
                                FUSE_HERE) {                              \
    const Operand a(list);                                                \
    const Operand* const in[] = {&a, &b};                                 \
    foreach_apply_(OpCode::name, list, in, place);                        \
  }
#define FUSE_FOREACH_INTO_3(name)                                         \
  inline void foreach_##name##_(const TensorList& list, const Operand& b, \
                                const Operand& c, FUSE_HERE) {            \
    const Operand a(list);                                                \
    const Operand* const in[] = {&a, &b, &c};                             \
    foreach_apply_(OpCode::name, list, in, place);                        \
  }
#define FUSE_FOREACH_INTO_4(name)                                         \
  inline void foreach_##name##_(const TensorList& list, const Operand& b, \
                                const Operand& c, const Operand& d,       \
                                FUSE_HERE) {                              \
    const Operand a(list);                                                \
    const Operand* const in[] = {&a, &b, &c, &d};                         \
    foreach_apply_(OpCode::name, list, in, place);                        \
  }
#define FUSE_FOREACH_MOVE(name)                                              \
  inline void foreach_##name##_(const TensorList& list, const Operand& from, \
                                FUSE_HERE) {                                 \
    const Operand* const in[] = {&from};                                     \
    foreach_apply_(OpCode::name, list, in, place);                           \
  }

#define OP(name, arity, ...) \
  FUSE_FOREACH_##arity(name) FUSE_FOREACH_INTO_##arity(name)
#define MOVE(name, arity, ...) \
  FUSE_FOREACH_##arity(name) FUSE_FOREACH_MOVE(name)
#include "fusebook/ops/ops.def"
#undef OP

/// `list = 0`, like torch._foreach_zero_.
inline void foreach_zero_(const TensorList& list, FUSE_HERE) {
  if (!list.defined()) {
    refuse_moved_from(std::source_location::current(), "the list");
  }
  foreach_fill_(list, Operand(0.0, place), place);
}

/// Converts the elements of a list to another dtype, rounding once; returns the
/// list itself if it already has that dtype. Throws Error for a list of
/// per-tensor numbers: those are computed in float64, whatever dtype they are
/// stored in.
[[nodiscard]] TensorList foreach_to(const TensorList& list, DType dtype,
                                    FUSE_HERE);

#undef FUSE_HERE
#undef FUSE_FOREACH_1
#undef FUSE_FOREACH_2
#undef FUSE_FOREACH_3
#undef FUSE_FOREACH_4
#undef FUSE_FOREACH_INTO_1
#undef FUSE_FOREACH_INTO_2
#undef FUSE_FOREACH_INTO_3
#undef FUSE_FOREACH_INTO_4
#undef FUSE_FOREACH_MOVE

}  // namespace fuse
