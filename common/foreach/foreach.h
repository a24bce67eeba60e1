#pragma once

#include <source_location>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/recorder.h"

namespace fuse {

/// Applies one row of ops.def to lists, with numbers repeated over the list.
/// Inside `compile` it is recorded, outside it runs at once. Lists must have
/// the same length, and their tensors shapes that broadcast as in torch, and not
/// be moved from; Error names the operands and the place otherwise. Where dtypes
/// differ, the result has the one that holds them all, as in torch; numbers,
/// per-tensor values and 0-d tensors beside others change none. `foreach_<op>`
/// functions are this for one operation each.
TensorList foreach_apply(OpCode op, Operands operands,
                         std::source_location place);
/// The same, with the result written into `target` and rounded to its dtype.
/// Its own tensors are never broadcast: Error where they would have to be.
void foreach_apply_(OpCode op, const TensorList& target, Operands operands,
                    std::source_location place);

#define FUSE_HERE std::source_location place = std::source_location::current()

// foreach_<op>(operands...) returns new lists; foreach_<op>_(list, ...) writes
// into its first operand, as torch._foreach_<op> and torch._foreach_<op>_ do.
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

/// `list = 0`, as torch._foreach_zero_.
inline void foreach_zero_(const TensorList& list, FUSE_HERE) {
  if (!list.defined()) {
    refuse_moved_from(std::source_location::current(), "the list");
  }
  foreach_fill_(list, Operand(0.0, place), place);
}

/// The elements of a list in another dtype, each rounded once; the list itself
/// if it has that dtype. Throws Error for a list of per-tensor numbers: those
/// are computed as float64, whatever they are stored in.
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
