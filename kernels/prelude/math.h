// The functions that the operations of ops.def use.
#ifndef FUSEBOOK_MATH_H
#define FUSEBOOK_MATH_H

#ifndef FUSEBOOK_TARGET_H  // a kernel has no files to include
#include "fusebook/prelude/target.h"
#endif

namespace fuse {

// Functions of the C library, with one operand and with two, under the names
// that they have there and in CUDA. The compiler must not see through them:
// folding and vectorising would give other bits than the library. An operation
// may use each of them as math::name.
// clang-format off
#define FUSE_FUNCTIONS_1(F)                                        \
  F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p)         \
  F(sin) F(cos) F(tan) F(asin) F(acos) F(atan)                     \
  F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(erf) F(erfc)
#define FUSE_FUNCTIONS_2(F) F(pow) F(fmod) F(atan2) F(hypot)
// clang-format on

// The host's functions, set once (host_math.cpp).
struct Calls {
#define FUSE_CALL_1(name)     \
  float (*name##_f32)(float); \
  double (*name##_f64)(double);
#define FUSE_CALL_2(name)            \
  float (*name##_f32)(float, float); \
  double (*name##_f64)(double, double);
  FUSE_FUNCTIONS_1(FUSE_CALL_1)
  FUSE_FUNCTIONS_2(FUSE_CALL_2)
#undef FUSE_CALL_1
#undef FUSE_CALL_2
};

}  // namespace fuse

namespace fuse::FUSE_DEVICE {

#if !defined(__CUDACC__)
extern const Calls* calls;
#endif

namespace math {

FUSE_FN float abs(float a) { return FUSE_BUILTIN(fabsf)(a); }
FUSE_FN double abs(double a) { return FUSE_BUILTIN(fabs)(a); }
FUSE_FN float sqrt(float a) { return FUSE_BUILTIN(sqrtf)(a); }
FUSE_FN double sqrt(double a) { return FUSE_BUILTIN(sqrt)(a); }
FUSE_FN float floor(float a) { return FUSE_BUILTIN(floorf)(a); }
FUSE_FN double floor(double a) { return FUSE_BUILTIN(floor)(a); }
FUSE_FN float ceil(float a) { return FUSE_BUILTIN(ceilf)(a); }
FUSE_FN double ceil(double a) { return FUSE_BUILTIN(ceil)(a); }
FUSE_FN float rint(float a) { return FUSE_BUILTIN(rintf)(a); }
FUSE_FN double rint(double a) { return FUSE_BUILTIN(rint)(a); }
FUSE_FN float trunc(float a) { return FUSE_BUILTIN(truncf)(a); }
FUSE_FN double trunc(double a) { return FUSE_BUILTIN(trunc)(a); }
FUSE_FN float copysign(float a, float b) {
  return FUSE_BUILTIN(copysignf)(a, b);
}
FUSE_FN double copysign(double a, double b) {
  return FUSE_BUILTIN(copysign)(a, b);
}

#if defined(__CUDACC__)
#define FUSE_CALL_F32(name) ::name##f
#define FUSE_CALL_F64(name) ::name
#else
#define FUSE_CALL_F32(name) calls->name##_f32
#define FUSE_CALL_F64(name) calls->name##_f64
#endif
#define FUSE_FUNCTION_1(name)                                    \
  FUSE_FN float name(float a) { return FUSE_CALL_F32(name)(a); } \
  FUSE_FN double name(double a) { return FUSE_CALL_F64(name)(a); }
#define FUSE_FUNCTION_2(name)                                                \
  FUSE_FN float name(float a, float b) { return FUSE_CALL_F32(name)(a, b); } \
  FUSE_FN double name(double a, double b) { return FUSE_CALL_F64(name)(a, b); }
namespace library {
FUSE_FUNCTIONS_1(FUSE_FUNCTION_1)
FUSE_FUNCTIONS_2(FUSE_FUNCTION_2)
}  // namespace library
#undef FUSE_FUNCTION_1
#undef FUSE_FUNCTION_2
#undef FUSE_CALL_F32
#undef FUSE_CALL_F64

// All but pow, which is defined below.
#define FUSE_FUNCTION(name) using library::name;
FUSE_FUNCTIONS_1(FUSE_FUNCTION)
FUSE_FUNCTION(fmod)
FUSE_FUNCTION(atan2)
FUSE_FUNCTION(hypot)
#undef FUSE_FUNCTION

// The remainder of a division by `b`, in the half-open range from 0 to `b`
// instead of with the sign of the dividend.
template <class T>
FUSE_FN T wrap(T rest, T b) {
  return rest != T(0) && (b < T(0)) != (rest < T(0)) ? rest + b : rest;
}

template <class T>
FUSE_FN T clamp(T a, T low, T high) {
  const T raised = (a != a || a > low) ? a : low;
  return (raised != raised || raised < high) ? raised : high;
}

// A product kept as the sum of two doubles: a power of thousands of factors
// then still rounds as if it had been computed exactly, within a unit in the
// last place (two among the very smallest numbers, where no low part fits).
struct TwoDoubles {
  double high;
  double low;
};

FUSE_FN bool is_finite(double a) { return abs(a) <= 0x1.fffffffffffffp+1023; }

FUSE_FN TwoDoubles multiply(TwoDoubles x, TwoDoubles y) {
  const double high = x.high * y.high;
  const bool ordinary = abs(high) > 0.0 && is_finite(high);
  const double low = FUSE_BUILTIN(fma)(x.high, y.high, -high) +
                     (x.high * y.low + x.low * y.high);
  const double sum = high + low;
  return {ordinary ? sum : high, ordinary ? low - (sum - high) : 0.0};
}

FUSE_FN TwoDoubles reciprocal(double x) {
  const double high = 1.0 / x;
  const bool ordinary = abs(high) >= 0x1p-960 && is_finite(high);
  if (!ordinary) return {high, 0.0};
  return {high, FUSE_BUILTIN(fma)(-high, x, 1.0) / x};
}

// base to an integer power, the same on every machine. Negative powers multiply
// reciprocals: dividing at the end would overflow where the result is small.
// On a GPU, where a whole block waits for one thread's power, the two products
// of a round overlap because nothing branches between them.
FUSE_CALLED double power(double base, i64 exponent) {
  TwoDoubles result = {1.0, 0.0};
  TwoDoubles square = exponent < 0 ? reciprocal(base) : TwoDoubles{base, 0.0};
  for (i64 rest = exponent < 0 ? -exponent : exponent; rest != 0; rest >>= 1) {
    const bool take = (rest & 1) != 0;
#if defined(FUSE_GPU)
    const TwoDoubles product = multiply(result, square);
    result = {take ? product.high : result.high,
              take ? product.low : result.low};
    square = multiply(square, square);
#else
    if (take) result = multiply(result, square);
    if (rest > 1) square = multiply(square, square);
#endif
  }
  return result.high;
}

// Integer exponents of this size use `power`, all others the library.
FUSE_FN bool is_whole(double exponent) {
  return exponent == rint(exponent) && abs(exponent) <= 2147483648.0;
}
FUSE_FN double pow(double base, double exponent) {
  if (!is_whole(exponent)) return library::pow(base, exponent);
  return power(base, i64(exponent));
}
FUSE_FN float pow(float base, float exponent) {
  if (!is_whole(exponent)) return library::pow(base, exponent);
  return float(power(base, i64(exponent)));
}

}  // namespace math

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_MATH_H
