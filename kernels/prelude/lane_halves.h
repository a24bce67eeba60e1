// What halves.h has, for many floats: compilers would take them one by one.
// Bit-identical. Included like lanes.h, and in front of kernels that have both.
#ifndef FUSEBOOK_LANE_HALVES_H
#define FUSEBOOK_LANE_HALVES_H

#ifndef FUSEBOOK_HALVES_H  // a kernel has no files to include
#include "fusebook/prelude/halves.h"
#endif
#ifndef FUSEBOOK_LANES_H
#include "fusebook/prelude/lanes.h"
#endif

#if defined(FUSE_LANES)
namespace fuse {
namespace FUSE_DEVICE {

typedef int Wholes __attribute__((vector_size(4 * FUSE_LANES)));

FUSE_FN Floats::Values floats_of(Wholes wholes) {
  return __builtin_convertvector(wholes, Floats::Values);
}
FUSE_FN Wholes whole_of(Floats floats) {
  typedef Floats::Values Values;
  const Values value = floats.value;
  const Values above = value > -32768.0f ? value : Values{} - 32768.0f;
  const Values within = above < 32767.0f ? above : Values{} + 32767.0f;
  return __builtin_convertvector(value != value ? Values{} : within, Wholes);
}
FUSE_FN Wholes with_sign(Floats::Halves halves) {
#if defined(__clang__)
  return __builtin_convertvector(halves, Wholes);
#elif FUSE_LANES == 16
  return Wholes(__builtin_ia32_pmovsxwd512_mask(halves, Wholes{}, -1));
#else
  return Wholes(__builtin_ia32_pmovsxwd256(halves));
#endif
}
template <class T>
FUSE_FN Floats load_int16(const T* from, i64 n) {
  return floats_of(with_sign(Floats::load<Floats::Halves>(from, n)));
}
template <class T>
FUSE_FN void store_int16(Floats floats, T* to, i64 n) {
  const Wholes wholes = whole_of(floats);
  Floats::store(__builtin_convertvector(wholes, Floats::Halves), to, n);
}
FUSE_FN Floats round_int16(Floats floats) {
  const Wholes wholes = whole_of(floats);
  return {floats_of(wholes), __builtin_convertvector(wholes, Floats::Halves)};
}

namespace math {

// Their results as memory holds them are at hand, as if they had been rounded.
FUSE_FN Floats high_half(Floats a) {
  const Floats::Bits bits = Floats::Bits(a.value);
  const Floats::Bits nearest =
      a.value == a.value ? bits + 0x8000U : bits | 0x400000U;
  return {Floats::Values(nearest & 0xffff0000U), Floats::upper_halves(nearest),
          nearest};
}
FUSE_FN Floats low_half(Floats a) {
  const Floats::Bits bits = Floats::Bits(a.value);
  const Floats::Bits some = a.value == a.value ? bits : Floats::Bits{};
  const Floats::Halves low = Floats::lower_halves(some);
  return {floats_of(with_sign(low)), low};
}
FUSE_FN Floats stochastic_half(Floats a, Floats random) {
  const Floats::Bits bits = Floats::Bits(a.value);
  const Floats::Bits raised = bits + (Floats::Bits(random.value) & 0xffffU);
  const Floats::Bits near = a.value == a.value ? raised : bits | 0x400000U;
  return {Floats::Values(near & 0xffff0000U), Floats::upper_halves(near), near};
}
FUSE_FN Floats join_int16(Floats high, Floats low) {
  const Floats::Bits bits = Floats::Bits(high.value);
  const Wholes whole = __builtin_convertvector(low.value, Wholes);
  const Floats::Bits joined = bits + Floats::Bits(whole);
  return Floats::Values(high.value != high.value ? bits : joined);
}
FUSE_FN Floats join_halves(Floats high, Floats low) {
  return join_int16(high, floats_of(whole_of(low)));
}

}  // namespace math

}  // namespace FUSE_DEVICE
}  // namespace fuse
#endif  // FUSE_LANES

#endif  // FUSEBOOK_LANE_HALVES_H
