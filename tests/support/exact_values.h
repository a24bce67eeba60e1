// What an operation should give for one element: the expression of its row over
// numbers that are exact for our purposes and know how large the rounded terms
// were that went into them. A new row is covered by that alone.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "fusebook/ops/ops.h"

namespace exact_values {

using Wide = long double;

template <class T>
struct Number {
  Wide value = 0;
  // The largest rounded term in the value; 0 for an operand.
  Wide term = 0;
  // No term so far was outside the range of T.
  bool in_range = true;

  Number() = default;
  explicit Number(double v) : value(v) {}

  static Number operand(T v) {
    Number n;
    n.value = v;
    return n;
  }
  // A result of operands with terms that grew to `term`.
  static Number result(Wide value, Wide term,
                       std::initializer_list<Number> from) {
    Number n;
    n.value = value;
    n.term = std::max(term, std::abs(value));
    for (const Number& x : from) n.in_range = n.in_range && x.is_usable();
    return n;
  }

 private:
  bool is_usable() const {
    if (term == 0 || value == 0) return in_range;
    const Wide size = std::abs(value);
    return in_range && size >= Wide(std::numeric_limits<T>::min()) &&
           size <= Wide(std::numeric_limits<T>::max()) / 2;
  }
};

template <class T>
Number<T> operator+(Number<T> a, Number<T> b) {
  return Number<T>::result(a.value + b.value, std::max(a.term, b.term), {a, b});
}
template <class T>
Number<T> operator-(Number<T> a) {
  a.value = -a.value;
  return a;
}
template <class T>
Number<T> operator-(Number<T> a, Number<T> b) {
  return a + -b;
}
template <class T>
Number<T> operator*(Number<T> a, Number<T> b) {
  const Wide term =
      std::max(a.term * std::abs(b.value), b.term * std::abs(a.value));
  return Number<T>::result(a.value * b.value, term, {a, b});
}
template <class T>
Number<T> operator/(Number<T> a, Number<T> b) {
  const Wide value = a.value / b.value;
  const Wide term = std::max(a.term, b.term * std::abs(value));
  return Number<T>::result(value, term / std::abs(b.value), {a, b});
}
#define COMPARE(op)                            \
  template <class T>                           \
  bool operator op(Number<T> a, Number<T> b) { \
    return a.value op b.value;                 \
  }
COMPARE(<)
COMPARE(<=)
COMPARE(>)
COMPARE(>=)
COMPARE(==)
COMPARE(!=)
#undef COMPARE

namespace math {

// `slope` is the size of the derivative, which may be infinite.
template <class T>
Number<T> apply(Number<T> a, Wide value, Wide slope) {
  return Number<T>::result(value, a.term == 0 ? 0 : a.term * slope, {a});
}
template <class T>
Number<T> abs(Number<T> a) {
  a.value = std::abs(a.value);
  return a;
}
template <class T>
Number<T> sqrt(Number<T> a) {
  const Wide root = std::sqrt(a.value);
  return apply(a, root, 0.5L / root);
}
template <class T>
Number<T> floor(Number<T> a) {
  return apply(a, std::floor(a.value), 0);
}
template <class T>
Number<T> ceil(Number<T> a) {
  return apply(a, std::ceil(a.value), 0);
}
template <class T>
Number<T> rint(Number<T> a) {
  return apply(a, std::rint(a.value), 0);
}
template <class T>
Number<T> trunc(Number<T> a) {
  return apply(a, std::trunc(a.value), 0);
}
#define FUNCTION(name, slope)             \
  template <class T>                      \
  Number<T> name(Number<T> a) {           \
    const Wide x = a.value;               \
    return apply(a, std::name(x), slope); \
  }
FUNCTION(exp, std::exp(x))
FUNCTION(exp2, std::exp2(x))
FUNCTION(expm1, std::exp(x))
FUNCTION(log, 1 / std::abs(x))
FUNCTION(log2, 2 / std::abs(x))
FUNCTION(log10, 1 / std::abs(x))
FUNCTION(log1p, 1 / std::abs(1 + x))
FUNCTION(sin, 1)
FUNCTION(cos, 1)
FUNCTION(tan, 1 + std::tan(x) * std::tan(x))
FUNCTION(asin, 1 / std::sqrt(1 - x * x))
FUNCTION(acos, 1 / std::sqrt(1 - x * x))
FUNCTION(atan, 1 / (1 + x * x))
FUNCTION(sinh, std::cosh(x))
FUNCTION(cosh, std::cosh(x))
FUNCTION(tanh, 1)
FUNCTION(asinh, 1 / std::hypot(1.0L, x))
FUNCTION(acosh, 1 / std::sqrt(x * x - 1))
FUNCTION(atanh, 1 / (1 - x * x))
FUNCTION(erf, 2)
FUNCTION(erfc, 2)
#undef FUNCTION

// Of two operands that were not rounded themselves.
#define FUNCTION(name)                                                \
  template <class T>                                                  \
  Number<T> name(Number<T> a, Number<T> b) {                          \
    return Number<T>::result(std::name(a.value, b.value), 0, {a, b}); \
  }
FUNCTION(pow)
FUNCTION(fmod)
FUNCTION(atan2)
FUNCTION(hypot)
FUNCTION(copysign)
#undef FUNCTION

// The float nearest to a number, as its bits.
template <class T>
std::uint32_t bits_of(const Number<T>& a) {
  return std::bit_cast<std::uint32_t>(float(a.value));
}
// The lower half of these bits as a number with a sign.
inline std::int32_t low_of(std::uint32_t bits) {
  const auto low = std::int32_t(bits % 65536);
  return low < 32768 ? low : low - 65536;
}
template <class T>
Number<T> high_half(Number<T> a) {
  if (std::isnan(a.value)) return a;
  const std::uint32_t high = bits_of(a) - std::uint32_t(low_of(bits_of(a)));
  return apply(a, std::bit_cast<float>(high), 0);
}
template <class T>
Number<T> low_half(Number<T> a) {
  return apply(a, std::isnan(a.value) ? 0 : low_of(bits_of(a)), 0);
}
template <class T>
Number<T> stochastic_half(Number<T> a, Number<T> random) {
  if (std::isnan(a.value)) return a;
  const std::uint32_t raised = bits_of(a) + bits_of(random) % 65536;
  const std::uint32_t high = raised / 65536 * 65536;
  return Number<T>::result(std::bit_cast<float>(high), 0, {a, random});
}
template <class T>
Number<T> join_halves(Number<T> high, Number<T> low) {
  if (std::isnan(high.value)) return high;
  Wide number = std::isnan(low.value) ? 0 : std::trunc(low.value);
  number = std::max<Wide>(-32768, std::min<Wide>(32767, number));
  const std::uint32_t joined =
      bits_of(high) + std::uint32_t(std::int32_t(number));
  return Number<T>::result(std::bit_cast<float>(joined), 0, {high, low});
}

template <class T>
Number<T> wrap(Number<T> rest, Number<T> b) {
  if (rest.value == 0 || (b.value < 0) == (rest.value < 0)) return rest;
  return rest + b;
}
template <class T>
Number<T> clamp(Number<T> a, Number<T> low, Number<T> high) {
  for (const Number<T>& x : {a, low, high}) {
    if (std::isnan(x.value)) return x;
  }
  const Number<T>& raised = a > low ? a : low;
  return raised < high ? raised : high;
}

}  // namespace math

#define PARAMETERS_1 T a
#define PARAMETERS_2 T a, T b
#define PARAMETERS_3 T a, T b, T c
#define PARAMETERS_4 T a, T b, T c, T d
#define OP(name, arity, expression, ...) \
  template <class T>                     \
  T op_##name(PARAMETERS_##arity) {      \
    return expression;                   \
  }
#include "fusebook/ops/ops.def"
#undef OP
#undef PARAMETERS_1
#undef PARAMETERS_2
#undef PARAMETERS_3
#undef PARAMETERS_4

template <class Function, class T>
T call(Function f, const std::array<T, 4>& x) {
  if constexpr (std::is_invocable_v<Function, T>) {
    return f(x[0]);
  } else if constexpr (std::is_invocable_v<Function, T, T>) {
    return f(x[0], x[1]);
  } else if constexpr (std::is_invocable_v<Function, T, T, T>) {
    return f(x[0], x[1], x[2]);
  } else {
    return f(x[0], x[1], x[2], x[3]);
  }
}

template <class T>
Number<T> evaluate(fuse::OpCode op, const std::array<T, 4>& operands) {
  std::array<Number<T>, 4> x;
  for (std::size_t k = 0; k < 4; ++k) x[k] = Number<T>::operand(operands[k]);
  using F = Number<T>;
  switch (op) {
#define OP(name, arity, ...)                                                \
  case fuse::OpCode::name:                                                  \
    return call([](auto... in) -> decltype(op_##name<F>(                    \
                                   in...)) { return op_##name<F>(in...); }, \
                x);
#include "fusebook/ops/ops.def"
#undef OP
    default:
      return {};
  }
}

// The distance from a number to the next larger one of its type.
template <class T>
Wide unit(Wide of) {
  using Limits = std::numeric_limits<T>;
  int exponent = 0;
  std::frexp(of, &exponent);
  if (of == 0 || exponent < Limits::min_exponent) return Limits::denorm_min();
  return std::ldexp(1.0L, exponent - Limits::digits);
}

// Whether `result` is within `bound` units of `value`; the term says which.
template <class T>
bool is_close(T result, Wide value, Wide term, double bound) {
  if (std::isnan(value)) return std::isnan(result);
  if (value == 0 && term == 0) {
    return result == 0 && std::signbit(result) == std::signbit(value);
  }
  const Wide allowed =
      (bound + 0x1p-10) * unit<T>(std::max(term, std::abs(value)));
  const Wide largest = std::numeric_limits<T>::max();
  if (std::isinf(result)) {
    return std::signbit(result) == std::signbit(value) &&
           std::abs(value) + allowed > largest;
  }
  if (std::isinf(value)) return false;
  return std::abs(Wide(result) - value) <= allowed;
}

/// What the bound of an operation's row says about one result.
enum class Verdict {
  holds,
  fails,
  says_nothing,  ///< about operands or terms that are out of range
};

template <class T>
Verdict judge(fuse::OpCode op, const std::array<T, 4>& operands, T result) {
  const fuse::OpInfo& row = fuse::info(op);
  // Written so that a NaN is in the domain: what it gives is no question.
  const bool outside =
      row.domain == fuse::Domain::positive && operands[0] < T(0);
  const Number<T> expected = evaluate(op, operands);
  if (outside || !expected.in_range) return Verdict::says_nothing;
  return is_close(result, expected.value, expected.term, row.ulp)
             ? Verdict::holds
             : Verdict::fails;
}

}  // namespace exact_values
