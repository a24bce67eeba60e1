#include "fusebook/ops/ops.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/ops/loops.h"
#include "support/exact_values.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::OpCode;

namespace {

using exact_values::is_close;
using Wide = exact_values::Wide;
using Oracle = std::function<Wide(Wide, Wide, Wide, Wide)>;

bool is_nan(Wide x) { return std::isnan(x); }

// The halves of a float32, by what its digits are worth.
namespace halves {

// The last digit of a float.
Wide unit_of(float x) {
  return std::ldexp(1.0L, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 23);
}
// How many upper halves lie below a float; the one in the middle counts.
Wide rounded(float x) {
  return std::floor(std::abs(Wide(x)) / unit_of(x) / 65536 + 0.5L);
}
Wide high(float x) {
  if (!std::isfinite(x)) return x;
  const Wide size = rounded(x) * 65536 * unit_of(x);
  return std::copysign(size < 0x1p128L ? size : HUGE_VALL, Wide(x));
}
Wide low(float x) {
  if (!std::isfinite(x)) return 0;
  return std::abs(Wide(x)) / unit_of(x) - rounded(x) * 65536;
}
// So many floats further from zero.
Wide joined(float high, Wide low) {
  if (is_nan(high) || is_nan(low)) return high;
  const Wide steps = std::trunc(std::clamp<Wide>(low, -32768, 32767));
  const auto bits = std::bit_cast<std::uint32_t>(high);
  return std::bit_cast<float>(bits + std::uint32_t(std::int64_t(steps)));
}
// Down, or up if as many 65536ths of the way as the other's lower half is reach it.
Wide stochastic(float x, float random) {
  if (!std::isfinite(x)) return x;
  const Wide added = std::bit_cast<std::uint32_t>(random) % 65536;
  const Wide steps =
      std::floor((std::abs(Wide(x)) / unit_of(x) + added) / 65536);
  const Wide size = steps * 65536 * unit_of(x);
  return std::copysign(size < 0x1p128L ? size : HUGE_VALL, Wide(x));
}

}  // namespace halves

// What the operations mean, written down a second time.
const std::map<std::string_view, Oracle>& oracles() {
  static const std::map<std::string_view, Oracle> all = {
#define ORACLE(name, ...)                                               \
  {                                                                     \
    #name, [](Wide a, Wide b, Wide c, Wide d) -> Wide {                 \
      static_cast<void>(a), static_cast<void>(b), static_cast<void>(c), \
          static_cast<void>(d);                                         \
      __VA_ARGS__;                                                      \
    }                                                                   \
  }
    ORACLE(add, return a + b),
    ORACLE(add_scaled, return a + b * c),
    ORACLE(sub, return a - b),
    ORACLE(sub_scaled, return a - b * c),
    ORACLE(mul, return a * b),
    ORACLE(div, return a / b),
    ORACLE(neg, return std::copysign(a, std::signbit(a) ? 1.0L : -1.0L)),
    ORACLE(abs, return std::copysign(a, 1.0L)),
    ORACLE(sign, if (a > 0) return 1; if (a < 0) return -1; return 0),
    ORACLE(sqrt, return std::sqrt(a)),
    ORACLE(rsqrt, return 1 / std::sqrt(a)),
    ORACLE(reciprocal, return 1 / a),
    ORACLE(square, return a * a),
    ORACLE(exp, return std::exp(a)),
    ORACLE(exp2, return std::pow(2.0L, a)),
    ORACLE(expm1, return std::expm1(a)),
    ORACLE(log, return std::log(a)),
    ORACLE(log2, return std::log2(a)),
    ORACLE(log10, return std::log10(a)),
    ORACLE(log1p, return std::log1p(a)),
    ORACLE(pow, return std::pow(a, b)),
    ORACLE(hypot, return std::hypot(a, b)),
    ORACLE(sin, return std::sin(a)),
    ORACLE(cos, return std::cos(a)),
    ORACLE(tan, return std::tan(a)),
    ORACLE(asin, return std::asin(a)),
    ORACLE(acos, return std::acos(a)),
    ORACLE(atan, return std::atan(a)),
    ORACLE(atan2, return std::atan2(a, b)),
    ORACLE(sinh, return std::sinh(a)),
    ORACLE(cosh, return std::cosh(a)),
    ORACLE(tanh, return std::tanh(a)),
    ORACLE(asinh, return std::asinh(a)),
    ORACLE(acosh, return std::acosh(a)),
    ORACLE(atanh, return std::atanh(a)),
    ORACLE(erf, return std::erf(a)),
    ORACLE(erfc, return std::erfc(a)),
    ORACLE(sigmoid, return 1 / (1 + std::exp(-a))),
    ORACLE(relu, if (is_nan(a)) return a; if (a >= 0) return a; return 0),
    ORACLE(floor, return std::floor(a)),
    ORACLE(ceil, return std::ceil(a)),
    ORACLE(round, return std::nearbyint(a)),
    ORACLE(trunc, return std::trunc(a)),
    ORACLE(frac, return a - std::trunc(a)),
    ORACLE(fmod, return std::fmod(a, b)),
    ORACLE(remainder, const Wide rest = std::fmod(a, b);
           const bool other_side = (a < 0) != (b < 0);
           return rest == 0 || !other_side ? rest : rest + b),
    ORACLE(copysign, return std::signbit(b) ? -std::abs(a) : std::abs(a)),
    ORACLE(minimum, if (is_nan(a)) return a; if (is_nan(b)) return b;
           if (a < b) return a; return b),
    ORACLE(maximum, if (is_nan(a)) return a; if (is_nan(b)) return b;
           if (a > b) return a; return b),
    ORACLE(clamp, if (is_nan(a)) return a; if (is_nan(b)) return b;
           if (is_nan(c)) return c; Wide x = a; if (x <= b) x = b;
           if (x >= c) x = c; return x),
    ORACLE(eq, return a == b ? 1 : 0),
    ORACLE(ne, return a == b ? 0 : 1),
    ORACLE(lt, return a < b ? 1 : 0),
    ORACLE(le, return a < b || a == b ? 1 : 0),
    ORACLE(gt, return b < a ? 1 : 0),
    ORACLE(ge, return b < a || a == b ? 1 : 0),
    ORACLE(isnan, return is_nan(a) ? 1 : 0),
    ORACLE(isinf, return std::isinf(a) ? 1 : 0),
    ORACLE(isfinite, return std::isfinite(a) ? 1 : 0),
    ORACLE(logical_and, return a == 0 || b == 0 ? 0 : 1),
    ORACLE(logical_or, return a == 0 && b == 0 ? 0 : 1),
    ORACLE(logical_xor, return (a == 0) == (b == 0) ? 0 : 1),
    ORACLE(logical_not, return a == 0 ? 1 : 0),
    ORACLE(where, if (is_nan(a)) return b; return a == 0 ? c : b),
    ORACLE(lerp, const Wide w = c; const Wide difference = b - a;
           if (std::abs(w) < 0.5L) return a + w * difference;
           return b - difference * (1 - w)),
    ORACLE(addcmul, return a + d * b * c),
    ORACLE(addcdiv, return a + d * b / c),
    ORACLE(join_halves, return halves::joined(float(a), b)),
    ORACLE(high_half, return halves::high(float(a))),
    ORACLE(low_half, return halves::low(float(a))),
    ORACLE(stochastic_half, return halves::stochastic(float(a), float(b))),
    ORACLE(copy, return a),
    ORACLE(fill, return a),
#undef ORACLE
  };
  return all;
}

template <class T>
constexpr DType dtype =
    std::is_same_v<T, float> ? DType::float32 : DType::float64;

template <class T>
T run(OpCode op, const std::array<T, 4>& x) {
  const void* const in[] = {&x[0], &x[1], &x[2], &x[3]};
  T result = 0;
  fuse::loops().ops[std::size_t(dtype<T>)][std::size_t(op)][0](&result, in, 1);
  return result;
}

template <class T>
std::string describe(const fuse::OpInfo& op, const std::array<T, 4>& x) {
  std::string text(op.name);
  for (int k = 0; k < op.arity; ++k) {
    char number[40];
    std::snprintf(number, sizeof(number), " %.17g", double(x[std::size_t(k)]));
    text += number;
  }
  return text + " in " + fuse::name_of(dtype<T>);
}

// Checks one application. True when the operands were fit for its bound.
template <class T>
bool check(const fuse::OpInfo& op, OpCode code, const std::array<T, 4>& x) {
  const exact_values::Number<T> expected = exact_values::evaluate(code, x);
  if (!expected.in_range) return false;
  const T result = run(code, x);
  if (!is_close(result, expected.value, expected.term, op.ulp)) {
    FAIL_CHECK(describe(op, x) << " gives " << double(result) << ", not "
                               << double(expected.value));
  }
  const auto oracle = oracles().find(op.name);
  if (oracle == oracles().end()) return true;
  const Wide value = oracle->second(x[0], x[1], x[2], x[3]);
  if (!is_close(result, value, expected.term, op.ulp)) {
    FAIL_CHECK(describe(op, x) << " gives " << double(result)
                               << ", but should be " << double(value));
  }
  return true;
}

template <class T>
void check_random_operands() {
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto code = OpCode(i);
    const fuse::OpInfo& op = fuse::info(code);
    Random random{std::uint64_t(i)};
    int fit = 0;
    for (int n = 0; n < 20000; ++n) {
      std::array<T, 4> x;
      for (T& operand : x) operand = any_value<T>(random);
      // Cancellation and equality do not come by chance.
      if (random.chance(0.1)) x[1] = x[0];
      if (random.chance(0.1)) x[0] = -x[1] * x[2];
      if (op.domain == fuse::Domain::positive) x[0] = std::abs(x[0]);
      fit += int(check(op, code, x));
    }
    INFO(op.name);
    CHECK(fit > 10000);
  }
}

template <class T>
void check_special_operands() {
  const auto& specials = special_values<T>();
  const int count = int(specials.size());
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto code = OpCode(i);
    const fuse::OpInfo& op = fuse::info(code);
    int combinations = 1;
    for (int k = 0; k < std::min(op.arity, 3); ++k) combinations *= count;
    for (int n = 0; n < combinations; ++n) {
      std::array<T, 4> x;
      int rest = n;
      for (std::size_t k = 0; k < 3; ++k, rest /= count) {
        x[k] = specials[std::size_t(rest % count)];
      }
      x[3] = specials[std::size_t(n % 7)];
      check(op, code, x);
    }
  }
}

template <class T>
T one(OpCode op, T a = 0, T b = 0, T c = 0, T d = 0) {
  return run<T>(op, {a, b, c, d});
}

// By the bit that says so.
bool is_quiet(const float& nan) {
  return (std::bit_cast<std::uint32_t>(nan) >> 22U & 1U) != 0;
}
bool is_quiet(const double& nan) {
  return (std::bit_cast<std::uint64_t>(nan) >> 51U & 1U) != 0;
}

}  // namespace

TEST_CASE("every oracle belongs to an operation") {
  for (const auto& [name, oracle] : oracles()) {
    const auto rows = fuse::op_table();
    CHECK(std::any_of(rows.begin(), rows.end(), [&, n = name](const auto& row) {
      return row.name == n;
    }));
  }
}

TEST_CASE("random operands: within the bound of the row") {
  check_random_operands<float>();
  check_random_operands<double>();
}

// Found by comparing millions of operands with quad precision.
TEST_CASE("where the C library is least exact: within the bound of the row") {
  const std::array<std::pair<OpCode, double>, 4> hard = {{
      {OpCode::tanh, 0x1.df9b6b68ff67ap-3},  // glibc 2.36: 2.19 ulp
      {OpCode::tanh, 0x1.cdcbae899858ep-3},
      {OpCode::erf, 0x1.c593f5cfe74e2p-5},   // 1.14 ulp
      {OpCode::erfc, 0x1.3fed4b9b61ba7p+0},  // 4.30 ulp
  }};
  for (const auto& [op, x] : hard) {
    CHECK(check<double>(fuse::info(op), op, {x, 0, 0, 0}));
  }
}

TEST_CASE("special operands: within the bound of the row") {
  check_special_operands<float>();
  check_special_operands<double>();
}

TEST_CASE("the table as data") {
  CHECK(fuse::op_table().size() == std::size_t(fuse::op_count));
  CHECK(fuse::info(OpCode::addcmul).name == "addcmul");
  CHECK(fuse::info(OpCode::addcmul).arity == 4);
  CHECK(fuse::info(OpCode::addcmul).value == "a + d * b * c");
  CHECK(fuse::info(OpCode::log).domain == fuse::Domain::positive);
  CHECK(fuse::name_of(OpCode::lerp) == "lerp");
  CHECK(fuse::name_of(OpCode::constant) == "constant");
  CHECK(fuse::name_of(OpCode::argument) == "argument");
  CHECK(fuse::name_of(OpCode::load) == "load");
  CHECK(fuse::name_of(OpCode::cast) == "cast");
  for (const fuse::OpInfo& row : fuse::op_table()) {
    INFO(row.name);
    CHECK(row.arity >= 1);
    CHECK(row.arity <= 4);
    CHECK(row.ulp >= 0);
    // Every operand takes part.
    for (int k = 0; k < row.arity; ++k) {
      CHECK(row.value.find("abcd"[k]) != std::string_view::npos);
    }
  }
}

// What the table says of them is seen in what they do; library_calls_test does
// the same for the library.
TEST_CASE_TEMPLATE("a NaN among the results of arithmetic is a quiet one", T,
                   float, double) {
  const T signaling = std::numeric_limits<T>::signaling_NaN();
  int arithmetic = 0;
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto op = OpCode(i);
    if (!fuse::is_arithmetic(op)) continue;
    ++arithmetic;
    INFO(fuse::name_of(op));
    for (std::size_t k = 0; k < std::size_t(fuse::info(op).arity); ++k) {
      std::array<T, 4> x = {T(1.5), T(2.5), T(0.25), T(3)};
      x[k] = signaling;
      const T result = run<T>(op, x);
      CHECK(std::isnan(result));
      CHECK(is_quiet(result));
    }
  }
  CHECK(arithmetic == 12);
  CHECK_FALSE(is_quiet(one<T>(OpCode::copy, signaling)));
}

TEST_CASE("operations that divide or take a root are of the kind division") {
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto op = OpCode(i);
    const std::string_view value = fuse::info(op).value;
    INFO(fuse::name_of(op));
    const bool writes = value.find(" / ") != std::string_view::npos ||
                        value.find("math::sqrt(") != std::string_view::npos;
    CHECK(fuse::divides(op) == (writes && !fuse::calls_library(op)));
    if (fuse::divides(op)) CHECK(fuse::is_arithmetic(op));
  }
}

TEST_CASE("a move is its operand, and nothing else is") {
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto op = OpCode(i);
    INFO(fuse::name_of(op));
    CHECK(fuse::is_move(op) == (fuse::info(op).value == "a"));
  }
  for (const OpCode op :
       {OpCode::constant, OpCode::argument, OpCode::load, OpCode::cast}) {
    CHECK_FALSE(fuse::is_move(op));
    CHECK_FALSE(fuse::is_arithmetic(op));
    CHECK_FALSE(fuse::divides(op));
    CHECK_FALSE(fuse::calls_library(op));
  }
}

TEST_CASE_TEMPLATE("semantics of special values", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T inf = std::numeric_limits<T>::infinity();

  for (const OpCode op : {OpCode::minimum, OpCode::maximum}) {
    CHECK(std::isnan(one<T>(op, nan, 1)));
    CHECK(std::isnan(one<T>(op, 1, nan)));
    CHECK(std::isnan(one<T>(op, nan, inf)));
  }
  CHECK(std::isnan(one<T>(OpCode::clamp, nan, 0, 1)));
  CHECK(std::isnan(one<T>(OpCode::clamp, 0, nan, 1)));
  CHECK(std::isnan(one<T>(OpCode::clamp, 0, -1, nan)));
  // The upper bound wins when the bounds cross.
  CHECK(one<T>(OpCode::clamp, 5, 3, 2) == 2);
  CHECK(one<T>(OpCode::clamp, 0, 3, 2) == 2);
  CHECK(std::isnan(one<T>(OpCode::relu, nan)));
  CHECK(one<T>(OpCode::relu, -inf) == 0);
  CHECK_FALSE(std::signbit(one<T>(OpCode::relu, -3)));
  CHECK(one<T>(OpCode::relu, inf) == inf);

  // Halves go to the even neighbour.
  CHECK(one<T>(OpCode::round, T(0.5)) == 0);
  CHECK(one<T>(OpCode::round, T(1.5)) == 2);
  CHECK(one<T>(OpCode::round, T(2.5)) == 2);
  CHECK(one<T>(OpCode::round, T(-2.5)) == -2);
  CHECK(std::signbit(one<T>(OpCode::round, T(-0.25))));
  CHECK(one<T>(OpCode::trunc, T(-1.75)) == -1);
  CHECK(one<T>(OpCode::floor, T(-1.25)) == -2);
  CHECK(one<T>(OpCode::ceil, T(-1.75)) == -1);
  CHECK(std::signbit(one<T>(OpCode::ceil, T(-0.5))));

  CHECK(same_value(one<T>(OpCode::sign, nan), T(0)));
  CHECK(same_value(one<T>(OpCode::sign, -T(0)), T(0)));
  CHECK(one<T>(OpCode::sign, -inf) == -1);
  CHECK(one<T>(OpCode::sign, std::numeric_limits<T>::denorm_min()) == 1);
  CHECK(same_value(one<T>(OpCode::abs, -T(0)), T(0)));
  CHECK(same_value(one<T>(OpCode::neg, T(0)), -T(0)));

  // Comparisons with NaN are false, but for "not equal".
  for (const OpCode op :
       {OpCode::eq, OpCode::lt, OpCode::le, OpCode::gt, OpCode::ge}) {
    CHECK(one<T>(op, nan, nan) == 0);
    CHECK(one<T>(op, 1, nan) == 0);
  }
  CHECK(one<T>(OpCode::ne, nan, nan) == 1);
  CHECK(one<T>(OpCode::eq, T(0), -T(0)) == 1);
  CHECK(one<T>(OpCode::lt, -inf, inf) == 1);

  CHECK(one<T>(OpCode::where, 1, 2, 3) == 2);
  CHECK(one<T>(OpCode::where, 0, 2, 3) == 3);
  CHECK(one<T>(OpCode::where, -T(0), 2, 3) == 3);
  CHECK(one<T>(OpCode::where, nan, 2, 3) == 2);
  CHECK(one<T>(OpCode::where, 1, 2, nan) == 2);

  CHECK(one<T>(OpCode::sqrt, inf) == inf);
  CHECK(std::isnan(one<T>(OpCode::sqrt, -1)));
  CHECK(same_value(one<T>(OpCode::sqrt, -T(0)), -T(0)));
  CHECK(one<T>(OpCode::rsqrt, 0) == inf);
  CHECK(one<T>(OpCode::log, 0) == -inf);
  CHECK(std::isnan(one<T>(OpCode::log, -1)));
  CHECK(one<T>(OpCode::exp, -inf) == 0);
  CHECK(one<T>(OpCode::exp, 1000) == inf);
  CHECK(one<T>(OpCode::tanh, inf) == 1);
  CHECK(one<T>(OpCode::sigmoid, -inf) == 0);
  CHECK(one<T>(OpCode::sigmoid, inf) == 1);
  CHECK(one<T>(OpCode::sigmoid, 0) == T(0.5));
  CHECK(one<T>(OpCode::reciprocal, -T(0)) == -inf);
  CHECK(std::isnan(one<T>(OpCode::div, 0, 0)));
}

TEST_CASE_TEMPLATE("what is not 0 is true, and so is a NaN", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T inf = std::numeric_limits<T>::infinity();
  const T tiny = std::numeric_limits<T>::denorm_min();
  for (const T yes : {T(1), T(-2), tiny, inf, nan}) {
    for (const T no : {T(0), -T(0)}) {
      CHECK(one<T>(OpCode::logical_not, yes) == 0);
      CHECK(one<T>(OpCode::logical_not, no) == 1);
      CHECK(one<T>(OpCode::logical_and, yes, yes) == 1);
      CHECK(one<T>(OpCode::logical_and, yes, no) == 0);
      CHECK(one<T>(OpCode::logical_and, no, yes) == 0);
      CHECK(one<T>(OpCode::logical_or, no, no) == 0);
      CHECK(one<T>(OpCode::logical_or, no, yes) == 1);
      CHECK(one<T>(OpCode::logical_or, yes, no) == 1);
      CHECK(one<T>(OpCode::logical_xor, yes, no) == 1);
      CHECK(one<T>(OpCode::logical_xor, no, yes) == 1);
      CHECK(one<T>(OpCode::logical_xor, yes, yes) == 0);
      CHECK(one<T>(OpCode::logical_xor, no, no) == 0);
    }
  }
  for (const T finite : {T(0), -T(0), tiny, std::numeric_limits<T>::max(),
                         std::numeric_limits<T>::lowest()}) {
    CHECK(one<T>(OpCode::isfinite, finite) == 1);
    CHECK(one<T>(OpCode::isnan, finite) == 0);
    CHECK(one<T>(OpCode::isinf, finite) == 0);
  }
  for (const T large : {inf, -inf}) {
    CHECK(one<T>(OpCode::isfinite, large) == 0);
    CHECK(one<T>(OpCode::isnan, large) == 0);
    CHECK(one<T>(OpCode::isinf, large) == 1);
  }
  CHECK(one<T>(OpCode::isfinite, nan) == 0);
  CHECK(one<T>(OpCode::isnan, nan) == 1);
  CHECK(one<T>(OpCode::isinf, nan) == 0);
}

TEST_CASE_TEMPLATE("what divisions leave has a sign", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity();
  // That of the dividend, and as in Python that of the divisor.
  CHECK(one<T>(OpCode::fmod, 7, 3) == 1);
  CHECK(one<T>(OpCode::fmod, -7, 3) == -1);
  CHECK(one<T>(OpCode::fmod, 7, -3) == 1);
  CHECK(one<T>(OpCode::remainder, 7, 3) == 1);
  CHECK(one<T>(OpCode::remainder, -7, 3) == 2);
  CHECK(one<T>(OpCode::remainder, 7, -3) == -2);
  CHECK(one<T>(OpCode::remainder, -7, -3) == -1);
  CHECK(same_value(one<T>(OpCode::fmod, -6, 3), -T(0)));
  CHECK(same_value(one<T>(OpCode::remainder, -6, 3), -T(0)));
  CHECK(same_value(one<T>(OpCode::remainder, 6, -3), T(0)));
  CHECK(one<T>(OpCode::fmod, 5, inf) == 5);
  CHECK(one<T>(OpCode::remainder, 5, inf) == 5);
  CHECK(one<T>(OpCode::remainder, -5, inf) == inf);
  CHECK(std::isnan(one<T>(OpCode::fmod, inf, 3)));
  CHECK(std::isnan(one<T>(OpCode::fmod, 1, 0)));
  CHECK(std::isnan(one<T>(OpCode::remainder, 1, 0)));
  CHECK(same_value(one<T>(OpCode::copysign, 3, -T(0)), T(-3)));
  CHECK(same_value(one<T>(OpCode::copysign, -T(0), 1), T(0)));
  CHECK(one<T>(OpCode::frac, T(-2.75)) == T(-0.75));
  CHECK(std::isnan(one<T>(OpCode::frac, inf)));
}

TEST_CASE_TEMPLATE("the library's functions at special values", T, float,
                   double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T inf = std::numeric_limits<T>::infinity();
  for (const OpCode op : {OpCode::sin, OpCode::cos, OpCode::tan}) {
    CHECK(std::isnan(one<T>(op, inf)));
  }
  CHECK(std::isnan(one<T>(OpCode::asin, T(1.5))));
  CHECK(std::isnan(one<T>(OpCode::acos, T(-1.5))));
  CHECK(std::isnan(one<T>(OpCode::acosh, T(0.5))));
  CHECK(one<T>(OpCode::atanh, 1) == inf);
  CHECK(one<T>(OpCode::erf, -inf) == -1);
  CHECK(one<T>(OpCode::erfc, inf) == 0);
  CHECK(one<T>(OpCode::erfc, -inf) == 2);
  CHECK(one<T>(OpCode::log1p, -1) == -inf);
  CHECK(std::isnan(one<T>(OpCode::log1p, -2)));
  CHECK(one<T>(OpCode::expm1, -inf) == -1);
  CHECK(one<T>(OpCode::exp2, 10) == 1024);
  CHECK(one<T>(OpCode::log2, T(0.125)) == -3);
  CHECK(one<T>(OpCode::log10, 1000) == 3);
  CHECK(one<T>(OpCode::hypot, inf, nan) == inf);
  CHECK(std::isnan(one<T>(OpCode::hypot, nan, 1)));
  // An intermediate result would be out of range.
  CHECK(one<T>(OpCode::hypot, std::numeric_limits<T>::max() / 2, 1) ==
        std::numeric_limits<T>::max() / 2);
  CHECK(same_value(one<T>(OpCode::atan2, -T(0), 1), -T(0)));
  CHECK(one<T>(OpCode::atan2, 0, -1) == T(3.14159265358979323846L));
  CHECK(one<T>(OpCode::square, -3) == 9);
}

TEST_CASE_TEMPLATE("lerp rounds as torch's two branches do", T, float, double) {
  Random random(7);
  int low = 0;
  for (int n = 0; n < 20000; ++n) {
    const T a = any_value<T>(random);
    const T b = any_value<T>(random);
    const T w = random.chance(0.2) ? any_value<T>(random)
                                   : T(random.uniform(-1.5, 1.5));
    // One rounding a line, whatever the compiler's mind about contraction.
    const volatile T difference = b - a;
    const volatile T scaled = w * difference;
    const volatile T rest = T(1) - w;
    const volatile T back = difference * rest;
    const bool first = -T(0.5) < w && w < T(0.5);
    const T expected = first ? T(a + scaled) : T(b - back);
    REQUIRE(same_value(one<T>(OpCode::lerp, a, b, w), expected));
    low += int(first);
  }
  CHECK(low > 2000);
  CHECK(low < 18000);
  // The ends are exact: that is what the second branch is for.
  CHECK(one<T>(OpCode::lerp, T(0.1), T(1e7), 1) == T(1e7));
  CHECK(one<T>(OpCode::lerp, T(0.1), T(1e7), 0) == T(0.1));
}

TEST_CASE_TEMPLATE("products and sums round one by one", T, float, double) {
  Random random(11);
  for (int n = 0; n < 20000; ++n) {
    const T a = any_value<T>(random);
    const T b = any_value<T>(random);
    const T c = any_value<T>(random);
    const T d = any_value<T>(random);
    const volatile T product = b * c;
    const volatile T scaled = d * b;
    const volatile T scaled_product = scaled * c;
    const volatile T scaled_quotient = scaled / c;
    REQUIRE(same_value(one<T>(OpCode::add_scaled, a, b, c), T(a + product)));
    REQUIRE(same_value(one<T>(OpCode::sub_scaled, a, b, c), T(a - product)));
    REQUIRE(
        same_value(one<T>(OpCode::addcmul, a, b, c, d), T(a + scaled_product)));
    REQUIRE(same_value(one<T>(OpCode::addcdiv, a, b, c, d),
                       T(a + scaled_quotient)));
  }
}

namespace {

double power(double base, double exponent) {
  return one<double>(OpCode::pow, base, exponent);
}

void check_power(double base, std::int64_t exponent) {
  const Wide exact = std::pow(Wide(base), Wide(exponent));
  const double result = power(base, double(exponent));
  const double bound = std::abs(exact) < 0x1p-960L ? 2 : 1;
  if (!is_close(result, exact, 0, bound)) {
    FAIL_CHECK("pow(" << base << ", " << exponent << ") gives " << result
                      << ", not " << double(exact));
  }
}

}  // namespace

TEST_CASE("whole powers are within a unit of the exact ones") {
  Random random(3);
  for (int n = 0; n < 40000; ++n) {
    const double size = std::exp2(random.uniform(0, 31));
    const auto exponent = std::int64_t(random.chance(0.5) ? size : -size);
    // Results over the whole range, and a little beyond it.
    const double log2_result = random.uniform(-1080, 1030);
    double base = std::exp2(log2_result / double(exponent));
    if (random.chance(0.3)) base = -base;
    check_power(base, exponent);
  }
  for (const double base : special_values<double>()) {
    for (const std::int64_t exponent :
         {0L, 1L, -1L, 2L, -2L, 3L, -3L, 4L, -5L, 1023L, -1074L, 65537L,
          -65536L, 2147483647L, -2147483647L, 2147483648L, -2147483648L}) {
      check_power(base, exponent);
    }
  }
  // The bias corrections of Adam.
  for (std::int64_t step = 1; step < 3000; ++step) {
    check_power(0.9, step);
    check_power(0.999, step);
  }
}

TEST_CASE("powers of special values") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(power(nan, 0) == 1);
  CHECK(power(0, 0) == 1);
  CHECK(power(inf, 0) == 1);
  CHECK(power(1, nan) == 1);
  CHECK(power(1, inf) == 1);
  CHECK(std::isnan(power(nan, 1)));
  CHECK(std::isnan(power(2, nan)));
  CHECK(std::isnan(power(-2, 0.5)));
  CHECK(power(0, -1) == inf);
  CHECK(power(-0.0, -1) == -inf);
  CHECK(power(-0.0, -2) == inf);
  CHECK(same_value(power(-0.0, 3), -0.0));
  CHECK(same_value(power(-inf, -3), -0.0));
  CHECK(power(-inf, 3) == -inf);
  CHECK(power(2, inf) == inf);
  CHECK(power(2, -inf) == 0);
  CHECK(power(0.5, -inf) == inf);
  CHECK(power(2, -1074) == std::numeric_limits<double>::denorm_min());
  CHECK(power(2, 1023) == 0x1p1023);
  CHECK(power(2, 1024) == inf);
  // Beyond the whole exponents that are multiplied out.
  CHECK(power(1.0000000001, 4294967296.0) ==
        std::pow(1.0000000001, 4294967296.0));
}

TEST_CASE_TEMPLATE("small powers are products", T, float, double) {
  Random random(5);
  for (int n = 0; n < 20000; ++n) {
    const T x = any_value<T>(random);
    INFO(double(x));
    REQUIRE(same_value(one<T>(OpCode::pow, x, 2), T(x * x)));
    REQUIRE(same_value(one<T>(OpCode::pow, x, 1), x));
    REQUIRE(same_value(one<T>(OpCode::pow, x, -1), T(1 / x)));
    REQUIRE(one<T>(OpCode::pow, x, 0) == 1);
  }
}
