// Whole numbers of 16 bits, and floats in two halves of 16 bits. The library
// includes this, and kernels that have them contain its text.
#ifndef FUSEBOOK_HALVES_H
#define FUSEBOOK_HALVES_H

#ifndef FUSEBOOK_HALF_H  // a kernel has no files to include
#include "fusebook/prelude/half.h"
#endif

namespace fuse {
namespace FUSE_DEVICE {

// A whole number that 16 bits hold: cut towards zero, and for a NaN zero.
template <class T>
FUSE_FN int whole_of(T value) {
  const T above = value > T(-32768) ? value : T(-32768);
  const T within = above < T(32767) ? above : T(32767);
  return int(value != value ? T(0) : within);
}
FUSE_FN float from_int16(bits16 bits) { return float(short(bits)); }
template <class T>
FUSE_FN bits16 to_int16(T value) {
  return bits16(whole_of(value));
}
// By way of the 16 bits: without trapping math, g++ makes a trunc() of
// float(int(value)), which keeps the sign of a zero.
template <class T>
FUSE_FN float round_int16(T value) {
  return from_int16(to_int16(value));
}

struct i16;  // a tag, as half.h has them
template <>
struct UnalignedOf<i16> {
  typedef unaligned_bits16 type;
};
template <>
struct Memory<i16> {
  static FUSE_FN float load(bits16 stored) { return from_int16(stored); }
  template <class From>
  static FUSE_FN bits16 store(From value) {
    return to_int16(value);
  }
};

namespace math {

// The halves of a float32 are the upper 16 of its bits, rounded to a bfloat16 with
// the middle away from zero, and the lower 16, with a sign. Added up, modulo 2^32,
// they are the bits of the float again, also of one that rounds to infinity; if the
// middle went to the even one, two floats would have the same halves. A NaN is a
// quiet one in its upper half, and has zero below it.
FUSE_FN float high_half(float a) {
  const unsigned bits = bits_of(a);
  const unsigned nearest = a != a ? bits | 0x400000U : bits + 0x8000U;
  return float_of(nearest & 0xffff0000U);
}
FUSE_FN float low_half(float a) {
  return a != a ? 0.0f : float(short(bits_of(a)));
}
// Of what is an int16 already.
FUSE_FN float join_int16(float high, float low) {
  const unsigned bits = bits_of(high) + unsigned(int(low));
  return float_of(high != high ? bits_of(high) : bits);
}
FUSE_FN float join_halves(float high, float low) {
  return join_int16(high, float(whole_of(low)));
}
// The upper half, rounded away from zero where the lower half and 16 random bits, the
// lower ones of another float, add up to more than 16 bits hold. That is so for as
// many of the 65536 there are as the lower half says. What has no lower half stays
// as it is, infinity too, and behind the largest upper half infinity is the next. A
// NaN is a quiet one.
FUSE_FN float stochastic_half(float a, float random) {
  const unsigned bits = bits_of(a);
  const unsigned raised = bits + (bits_of(random) & 0xffffU);
  return float_of((a != a ? bits | 0x400000U : raised) & 0xffff0000U);
}
// Of the float32 that is nearest.
FUSE_FN double stochastic_half(double a, double random) {
  return double(stochastic_half(float(a), float(random)));
}
FUSE_FN double high_half(double a) { return double(high_half(float(a))); }
FUSE_FN double low_half(double a) { return double(low_half(float(a))); }
FUSE_FN double join_halves(double high, double low) {
  return double(join_halves(float(high), float(whole_of(low))));
}

}  // namespace math

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_HALVES_H
