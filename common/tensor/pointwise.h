#pragma once

#include <functional>
#include <source_location>
#include <span>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/ops/ops.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// An element in the formula of `pointwise`, or a number. Every operation of
/// ops.def is a function of it, and the usual operators work; a comparison
/// gives 1 or 0. At least one operand of an operation must be an element.
class Term {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  Term(double number) : number_(number) {}
  Term(Program& program, ValueId value) : program_(&program), value_(value) {}

  static Term apply(OpCode op, std::span<const Term> operands);
  /// The value in a program.
  ValueId in(Program& program) const;

#define FUSE_TERM_1(name)           \
  friend Term name(Term a) {        \
    const Term in[] = {a};          \
    return apply(OpCode::name, in); \
  }
#define FUSE_TERM_2(name)            \
  friend Term name(Term a, Term b) { \
    const Term in[] = {a, b};        \
    return apply(OpCode::name, in);  \
  }
#define FUSE_TERM_3(name)                    \
  friend Term name(Term a, Term b, Term c) { \
    const Term in[] = {a, b, c};             \
    return apply(OpCode::name, in);          \
  }
#define FUSE_TERM_4(name)                            \
  friend Term name(Term a, Term b, Term c, Term d) { \
    const Term in[] = {a, b, c, d};                  \
    return apply(OpCode::name, in);                  \
  }
#define OP(name, arity, ...) FUSE_TERM_##arity(name)
#include "fusebook/ops/ops.def"
#undef OP
#define FUSE_TERM_OPERATOR(sign, name)        \
  friend Term operator sign(Term a, Term b) { \
    const Term in[] = {a, b};                 \
    return apply(OpCode::name, in);           \
  }
  FUSE_TERM_OPERATOR(+, add)
  FUSE_TERM_OPERATOR(-, sub)
  FUSE_TERM_OPERATOR(*, mul)
  FUSE_TERM_OPERATOR(/, div)
  FUSE_TERM_OPERATOR(<=, le)
#undef FUSE_TERM_OPERATOR
#undef FUSE_TERM_1
#undef FUSE_TERM_2
#undef FUSE_TERM_3
#undef FUSE_TERM_4

 private:
  Program* program_ = nullptr;
  ValueId value_ = -1;
  double number_ = 0;
};

/// The elements of the inputs at one position.
using Terms = std::span<const Term>;
using Formula = std::function<Term(Terms)>;

/// target = formula(inputs), element by element in one pass; all tensors have
/// the same shape and device. Runs at once, even while a function is being
/// recorded, after any pending work on the tensors. The target may be one of
/// the inputs, but must not share other memory with them. Every operation is
/// rounded to the dtype of its elements, as in eager mode.
void pointwise_into(const Tensor& target, const std::vector<Tensor>& inputs,
                    const Formula& formula);

/// The same into a new tensor like the first input.
Tensor pointwise(const std::vector<Tensor>& inputs, const Formula& formula);

}  // namespace fuse
