// Elements in memory, including 16-bit numbers.
#ifndef FUSEBOOK_HALF_H
#define FUSEBOOK_HALF_H

#ifndef FUSEBOOK_TARGET_H  // a kernel has no files to include
#include "fusebook/prelude/target.h"
#endif

namespace fuse::FUSE_DEVICE {

#if defined(__CUDACC__)
// A GPU can only read elements that are aligned to their size.
template <class T>
struct UnalignedOf {
  typedef T type;
};
#else
// Elements may be at any address.
typedef float unaligned_f32 __attribute__((aligned(1), may_alias));
typedef double unaligned_f64 __attribute__((aligned(1), may_alias));
template <class T>
struct UnalignedOf;
template <>
struct UnalignedOf<float> {
  typedef unaligned_f32 type;
};
template <>
struct UnalignedOf<double> {
  typedef unaligned_f64 type;
};
#endif
template <class T>
using Unaligned = typename UnalignedOf<T>::type;

// 16-bit numbers, which the compilers do not all support: float16 (IEEE
// binary16) and bfloat16 (the upper half of a float). Memory holds their bits;
// registers hold floats. All conversions round once, ties to even; numbers out
// of range become infinite, denormals are kept, and a NaN stays a NaN. They are
// written without branches, so that loops over them become vector code; lanes.h
// does the same with dedicated instructions.
typedef unsigned short bits16;

FUSE_FN unsigned bits_of(float value) {
  unsigned bits;
  FUSE_BUILTIN(memcpy)(&bits, &value, sizeof(bits));
  return bits;
}
FUSE_FN float float_of(unsigned bits) {
  float value;
  FUSE_BUILTIN(memcpy)(&value, &bits, sizeof(value));
  return value;
}

// A double as a float whose last bit is set if any bits were dropped. Rounding
// that to 11 bits or fewer gives the same as rounding the double itself.
FUSE_FN float round_to_odd(double value) {
  const float nearest = float(value);
  const double back = double(nearest);
  const unsigned bits = bits_of(nearest);
  const bool too_large = FUSE_BUILTIN(fabs)(back) > FUSE_BUILTIN(fabs)(value);
  const unsigned odd = too_large ? bits - 1U : bits | 1U;
  const bool keep = back == value || value != value || (bits & 1U) != 0;
  return float_of(keep ? bits : odd);
}

FUSE_FN float from_bfloat16(bits16 bits) {
  return float_of(unsigned(bits) << 16);
}

// The bits of the float that holds the rounded number.
FUSE_FN unsigned rounded_bfloat16(float value) {
  const unsigned bits = bits_of(value);
  const unsigned rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  return (value != value ? bits | 0x400000U : rounded) & 0xffff0000U;
}
FUSE_FN float round_bfloat16(float value) {
  return float_of(rounded_bfloat16(value));
}
FUSE_FN float round_bfloat16(double value) {
  return round_bfloat16(round_to_odd(value));
}
FUSE_FN bits16 to_bfloat16(float value) {
  return bits16(rounded_bfloat16(value) >> 16);
}
FUSE_FN bits16 to_bfloat16(double value) {
  return to_bfloat16(round_to_odd(value));
}

// Compilers vectorise a choice only between numbers of the same width, so all
// of these have 32 bits until the end.
FUSE_FN float from_float16(bits16 bits) {
  const unsigned sign = unsigned(bits) << 16 & 0x80000000U;
  const unsigned size = unsigned(bits) << 13 & 0x0fffe000U;
  const float denormal = float(int(size)) * 0x1p-37f;
  const unsigned infinite =
      size | (int(size) > 0x0f800000 ? 0x7fc00000U : 0x7f800000U);
  const unsigned ordinary = size + 0x38000000U;
  const unsigned large = int(size) >= 0x0f800000 ? infinite : ordinary;
  return float_of((int(size) < 0x00800000 ? bits_of(denormal) : large) | sign);
}

// Denormals of float16 are multiples of 2^-24, as are the floats from 0.5 on.
FUSE_FN float round_float16(float value) {
  const unsigned sign = bits_of(value) & 0x80000000U;
  const unsigned size = bits_of(value) & 0x7fffffffU;
  const float denormal = (float_of(size) + 0.5f) - 0.5f;
  const unsigned ordinary = (size + 0xfffU + (size >> 13 & 1U)) & 0xffffe000U;
  const unsigned finite = int(size) < 0x38800000 ? bits_of(denormal) : ordinary;
  const unsigned rounded = int(finite) >= 0x47800000 ? 0x7f800000U : finite;
  const unsigned nan = (size | 0x400000U) & 0xffffe000U;
  return float_of((int(size) > 0x7f800000 ? nan : rounded) | sign);
}
FUSE_FN float round_float16(double value) {
  return round_float16(round_to_odd(value));
}
FUSE_FN bits16 to_float16(float value) {
  const unsigned sign = bits_of(value) & 0x80000000U;
  const unsigned size = bits_of(value) & 0x7fffffffU;
  const unsigned denormal = (bits_of(float_of(size) + 0.5f) - 0x3f000000U)
                            << 16;
  const unsigned ordinary = (size - 0x38000000U + 0xfffU + (size >> 13 & 1U))
                            << 3;
  const unsigned finite = int(size) < 0x38800000 ? denormal : ordinary;
  const unsigned rounded = int(size) >= 0x47800000 ? 0x7c000000U : finite;
  const unsigned nan = 0x7e000000U | (size << 3 & 0x3ff0000U);
  return bits16(((int(size) > 0x7f800000 ? nan : rounded) | sign) >> 16);
}
FUSE_FN bits16 to_float16(double value) {
  return to_float16(round_to_odd(value));
}

#if defined(__CUDACC__)
typedef bits16 unaligned_bits16;
#else
typedef bits16 unaligned_bits16 __attribute__((aligned(1), may_alias));
#endif
// Tags for them where a type is needed.
struct f16;
struct bf16;
template <>
struct UnalignedOf<f16> {
  typedef unaligned_bits16 type;
};
template <>
struct UnalignedOf<bf16> {
  typedef unaligned_bits16 type;
};

// How numbers of a type are kept in memory.
template <class T>
struct Memory {
  static FUSE_FN T load(T stored) { return stored; }
  template <class From>
  static FUSE_FN T store(From value) {
    return T(value);
  }
};
template <>
struct Memory<f16> {
  static FUSE_FN float load(bits16 stored) { return from_float16(stored); }
  template <class From>
  static FUSE_FN bits16 store(From value) {
    return to_float16(value);
  }
};
template <>
struct Memory<bf16> {
  static FUSE_FN float load(bits16 stored) { return from_bfloat16(stored); }
  template <class From>
  static FUSE_FN bits16 store(From value) {
    return to_bfloat16(value);
  }
};

template <class T>
FUSE_FN double load_scalar(const void* address) {
  return double(Memory<T>::load(*static_cast<const Unaligned<T>*>(address)));
}
template <class T>
FUSE_FN void store_scalar(void* address, double value) {
  *static_cast<Unaligned<T>*>(address) = Memory<T>::store(value);
}

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_HALF_H
