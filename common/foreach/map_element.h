#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>

#include "fusebook/ops/ops.h"
#include "fusebook/trace/operands.h"

namespace fuse {

struct Placed;

/// The value of one element inside the function of a `foreach_map`: of a list,
/// of a per-tensor list, or a number. Every operation of ops.def is a function
/// of it (`lerp(m, g, 0.1)`, `where(v > 0, a, b)`), and the usual operators
/// work, also with numbers, Scalars and 0-d tensors. A comparison gives 1 or 0.
/// The value cannot be read: code in the function only describes the
/// computation.
///
/// Every result is rounded to its dtype: that of the elements it is computed
/// from or, if they differ, the one torch promotes to (16 bits with float32,
/// and float16 with bfloat16, give float32; anything with float64 gives
/// float64). Numbers and per-tensor values never affect the dtype.
class Element {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Element(double number,
          std::source_location place = std::source_location::current())
      : operand_(number, place) {}
  Element(const Scalar& number) : operand_(number) {}
  /// Throws Error unless the tensor is 0-d.
  Element(const Tensor& number,
          std::source_location place = std::source_location::current())
      : operand_(number, place) {}
  // NOLINTEND(google-explicit-constructor)
  /// An operand of foreach_map, with its position.
  Element(Operand operand, int position)
      : operand_(std::move(operand)),
        position_(position),
        sources_(position < 0 ? 0 : source(std::size_t(position))) {}

  /// Always throws Error: there is no number yet.
  [[noreturn]] double item(
      std::source_location place = std::source_location::current()) const;

  Element& operator+=(const Placed& b);
  Element& operator-=(const Placed& b);
  Element& operator*=(const Placed& b);
  Element& operator/=(const Placed& b);

  const Operand& operand() const { return operand_; }
  /// Its position among the operands of foreach_map; -1 for a result.
  int position() const { return position_; }
  /// True if it is computed from the operand at that position, or is that
  /// operand.
  bool comes_from(std::size_t k) const { return (sources_ & source(k)) != 0; }

  /// Applies a row of ops.def, at the place of the first operand.
  static Element apply(OpCode op, std::span<const Placed* const> operands);

  /// Converts the element to another dtype, rounding once. After `to(p,
  /// DType::float32)` results no longer round to the 16 bits in which `p` is
  /// stored; stores still do. Throws Error for numbers and per-tensor values,
  /// which are always float64.
  friend Element to(const Placed& a, DType dtype) { return convert(a, dtype); }

#define FUSE_ELEMENT_1(name)             \
  friend Element name(const Placed& a) { \
    const Placed* const in[] = {&a};     \
    return apply(OpCode::name, in);      \
  }
#define FUSE_ELEMENT_2(name)                              \
  friend Element name(const Placed& a, const Placed& b) { \
    const Placed* const in[] = {&a, &b};                  \
    return apply(OpCode::name, in);                       \
  }
#define FUSE_ELEMENT_3(name)                                               \
  friend Element name(const Placed& a, const Placed& b, const Placed& c) { \
    const Placed* const in[] = {&a, &b, &c};                               \
    return apply(OpCode::name, in);                                        \
  }
#define FUSE_ELEMENT_4(name)                                             \
  friend Element name(const Placed& a, const Placed& b, const Placed& c, \
                      const Placed& d) {                                 \
    const Placed* const in[] = {&a, &b, &c, &d};                         \
    return apply(OpCode::name, in);                                      \
  }
// Found only through the type of their arguments (ADL), so they hide no other
// sqrt.
#define OP(name, arity, ...) FUSE_ELEMENT_##arity(name)
#include "fusebook/ops/ops.def"
#undef OP
#define FUSE_ELEMENT_OPERATOR(sign, name)                          \
  friend Element operator sign(const Placed& a, const Placed& b) { \
    const Placed* const in[] = {&a, &b};                           \
    return apply(OpCode::name, in);                                \
  }
  FUSE_ELEMENT_OPERATOR(+, add)
  FUSE_ELEMENT_OPERATOR(-, sub)
  FUSE_ELEMENT_OPERATOR(*, mul)
  FUSE_ELEMENT_OPERATOR(/, div)
  FUSE_ELEMENT_OPERATOR(==, eq)
  FUSE_ELEMENT_OPERATOR(!=, ne)
  FUSE_ELEMENT_OPERATOR(<, lt)
  FUSE_ELEMENT_OPERATOR(<=, le)
  FUSE_ELEMENT_OPERATOR(>, gt)
  FUSE_ELEMENT_OPERATOR(>=, ge)
#undef FUSE_ELEMENT_OPERATOR
  friend Element operator-(const Placed& a) {
    const Placed* const in[] = {&a};
    return apply(OpCode::neg, in);
  }
#undef FUSE_ELEMENT_1
#undef FUSE_ELEMENT_2
#undef FUSE_ELEMENT_3
#undef FUSE_ELEMENT_4

 private:
  // All operands from the 64th on share one bit.
  static std::uint64_t source(std::size_t k) {
    return std::uint64_t(1) << std::min<std::size_t>(k, 63);
  }
  static Element convert(const Placed& a, DType dtype);

  Operand operand_;
  int position_ = -1;
  std::uint64_t sources_ = 0;
};

/// An operand of an operation on elements, and its source location: operators
/// cannot take a default argument, but conversions can.
struct Placed {
  // NOLINTBEGIN(google-explicit-constructor)
  Placed(const Element& element,
         std::source_location at = std::source_location::current())
      : place(at), element_(&element) {}
  Placed(double number,
         std::source_location at = std::source_location::current())
      : place(at), own_(std::in_place, number, at) {}
  Placed(const Scalar& number,
         std::source_location at = std::source_location::current())
      : place(at), own_(std::in_place, number) {}
  Placed(const Tensor& number,
         std::source_location at = std::source_location::current())
      : place(at), own_(std::in_place, number, at) {}
  // NOLINTEND(google-explicit-constructor)

  const Element& element() const { return element_ ? *element_ : *own_; }

  std::source_location place;

 private:
  const Element* element_ = nullptr;
  std::optional<Element> own_;
};

inline Element& Element::operator+=(const Placed& b) {
  return *this = *this + b;
}
inline Element& Element::operator-=(const Placed& b) {
  return *this = *this - b;
}
inline Element& Element::operator*=(const Placed& b) {
  return *this = *this * b;
}
inline Element& Element::operator/=(const Placed& b) {
  return *this = *this / b;
}

}  // namespace fuse
