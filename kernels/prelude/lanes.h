// Many floats at once, for kernels on numbers of 16 bits or codes of 8. Every
// operation on those begins or ends with a conversion, and a CPU has instructions
// for it that compilers do not use in a loop over single elements. The prebuilt
// loops include this, and the source of such a kernel has it after cpu_loops.h;
// without such instructions it has only single floats.
#ifndef FUSEBOOK_LANES_H
#define FUSEBOOK_LANES_H

#ifndef FUSEBOOK_LANE_WORDS_H  // a kernel has no files to include
#include "fusebook/prelude/lane_words.h"
#endif

// The result of arithmetic on numbers among which the lower half of every NaN is zero,
// as in those of bfloat16. If it is a NaN, it is a quiet one, and such a one, too:
// rounding then keeps it as it is, without a test.
namespace fuse {
namespace FUSE_DEVICE {
FUSE_FN float round_result_bfloat16(float value) {
  return round_bfloat16(value);
}
}  // namespace FUSE_DEVICE
}  // namespace fuse

#if defined(FUSE_LANES)
#if defined(__clang__)
#define FUSE_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define FUSE_UNROLLED _Pragma("GCC unroll 16")
#endif

namespace fuse {
namespace FUSE_DEVICE {

// As wide as a register. In memory a full set of 16-bit numbers is half as
// wide.
struct Floats {
  static constexpr int count = FUSE_LANES;
  typedef float Values __attribute__((vector_size(4 * FUSE_LANES)));
  typedef unsigned Bits __attribute__((vector_size(4 * FUSE_LANES)));
  typedef short Halves __attribute__((vector_size(2 * FUSE_LANES)));

  Values value;
  Halves rounded;  // the same as stored in memory, if a rounding made it
  Bits nearest;    // what bfloat16 is the upper half of, if a rounding made it

  Floats() = default;
  FUSE_FN Floats(Values values) : value(values), rounded(), nearest() {}
  FUSE_FN Floats(Values values, Halves halves, Bits bits = Bits())
      : value(values), rounded(halves), nearest(bits) {}
  FUSE_FN Floats(float number) : rounded(), nearest() {
    // A NaN that 16-bit numbers can represent: see round_result_bfloat16.
    const float repeated =
        number != number ? float_of((bits_of(number) & 0xffff0000U) | 0x400000U)
                         : number;
    FUSE_UNROLLED
    for (int k = 0; k < count; ++k) value[k] = repeated;
#if !defined(__clang__)
    // g++ would evaluate a choice on a repeated number lane by lane, in scalar
    // code. It cannot see through this: every lane is the first.
    if (!__builtin_constant_p(repeated))
      value = first_everywhere(Values{repeated});
#endif
  }

#if !defined(__clang__)
  static FUSE_FN Values first_everywhere(Values values) {
    typedef int Ints __attribute__((vector_size(4 * FUSE_LANES)));
#if FUSE_LANES == 16
    return __builtin_ia32_permvarsf512_mask(values, Ints{}, Values{}, -1);
#else
    return __builtin_ia32_permvarsf256(values, Ints{});
#endif
  }
#endif

  // The first n elements at an address; the others are zero. With memcpy, g++ would
  // keep some of these vectors in memory.
  template <class Vector, class T>
  static FUSE_FN Vector load(const T* from, i64 n) {
    static_assert(sizeof(T) <= 4);
    if (n != count) return load_words<Vector>(from, n * words_of<T>);
    typedef Vector InMemory __attribute__((aligned(1), may_alias));
    return *reinterpret_cast<const InMemory*>(from);
  }
  template <class Vector, class T>
  static FUSE_FN void store(const Vector& vector, T* to, i64 n) {
    if (n != count) return store_words(vector, to, n * words_of<T>);
    typedef Vector InMemory __attribute__((aligned(1), may_alias));
    *reinterpret_cast<InMemory*>(to) = vector;
  }

  // These instructions round ties to even in every mode of the CPU, keep
  // denormals, and make NaNs quiet: bit-identical to half.h.
#if FUSE_LANES == 16
  static FUSE_FN Values from_halves(Halves halves) {
    return __builtin_ia32_vcvtph2ps512_mask(halves, Values{}, -1, 4);
  }
  FUSE_FN Halves halves() const {
    return __builtin_ia32_vcvtps2ph512_mask(value, 0, Halves{}, -1);
  }
#else
  static FUSE_FN Values from_halves(Halves halves) {
#if __has_builtin(__builtin_ia32_vcvtph2ps256)
    return __builtin_ia32_vcvtph2ps256(halves);
#else  // newer versions of clang spell it this way
    typedef _Float16 Numbers __attribute__((vector_size(2 * FUSE_LANES)));
    return __builtin_convertvector(Numbers(halves), Values);
#endif
  }
  FUSE_FN Halves halves() const {
    return __builtin_ia32_vcvtps2ph256(value, 0);
  }
#endif
  static FUSE_FN Bits widened(Halves halves) {
#if defined(__clang__)
    typedef bits16 Unsigned __attribute__((vector_size(2 * FUSE_LANES)));
    return __builtin_convertvector(Unsigned(halves), Bits);
#elif FUSE_LANES == 16
    typedef int Ints __attribute__((vector_size(4 * FUSE_LANES)));
    return Bits(__builtin_ia32_pmovzxwd512_mask(halves, Ints{}, -1));
#else
    return Bits(__builtin_ia32_pmovzxwd256(halves));
#endif
  }
#if FUSE_LANES == 16 && !defined(__clang__)
  // Instructions that g++ does not find in what stands below.
  typedef int Ints __attribute__((vector_size(4 * FUSE_LANES)));
  static FUSE_FN Halves chosen(Bits bits, Words words) {
    const Words all = __builtin_shuffle(Words(bits), words);
    Halves halves;
    FUSE_BUILTIN(memcpy)(&halves, &all, sizeof(halves));
    return halves;
  }
  static FUSE_FN Halves upper_halves(Bits bits) {
    return chosen(
        bits, Words{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31});
  }
  static FUSE_FN Halves lower_halves(Bits bits) {
    return chosen(
        bits, Words{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30});
  }
  static FUSE_FN Bits as_upper_halves(Halves halves) {
    typedef int Half __attribute__((vector_size(2 * FUSE_LANES)));
    const Words places = {0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                          0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
    return Bits(__builtin_ia32_permvarhi512_mask(
        Words(__builtin_ia32_si512_256si(Half(halves))), places, Words{},
        0xaaaaaaaaU));
  }
  // bits + 0x7fff + (bits >> 16 & 1) with fewer instructions.
  static FUSE_FN Bits nearest_bfloat16(Bits bits) {
#if defined(__AVX512VNNI__)
    // Products of words are added: 1 * (bits >> 16 & 1) and 0x7fff * 1.
    const Ints words = __builtin_ia32_pternlogd512_mask(
        Ints(bits), Ints{} + 0x10000, Ints{} + 1, 0xea, -1);
    return Bits(
        __builtin_ia32_vpdpwssd_v16si(Ints(bits), words, Ints{} + 0x17fff));
#else
    // What is subtracted is ~(0x7ffe | (bits >> 16 & 1)).
    return bits - Bits(__builtin_ia32_pternlogd512_mask(
                      Ints(bits >> 16), Ints{} + 1, Ints{} + 0x7ffe, 0x15, -1));
#endif
  }
#else
  static FUSE_FN Halves upper_halves(Bits bits) {
    return lower_halves(bits >> 16);
  }
  static FUSE_FN Halves lower_halves(Bits bits) {
    return __builtin_convertvector(bits, Halves);
  }
  static FUSE_FN Bits as_upper_halves(Halves halves) {
    return widened(halves) << 16;
  }
  static FUSE_FN Bits nearest_bfloat16(Bits bits) {
    return bits + 0x7fffU + (bits >> 16 & 1U);
  }
#endif
  // The upper halves of two, in turns.
  static FUSE_FN Bits upper_halves(Bits even, Bits odd) {
#if FUSE_LANES == 8 && !defined(__clang__)
    return Bits(__builtin_ia32_pblendw256(Words(even >> 16), Words(odd), 0xaa));
#else
    return even >> 16 | (odd & 0xffff0000U);
#endif
  }
  FUSE_FN Bits rounded_bfloat16() const {
    const Bits bits = Bits(value);
    const Bits number = nearest_bfloat16(bits);
    return (value != value ? bits | 0x400000U : number) & 0xffff0000U;
  }

  template <class T>
  static FUSE_FN Floats load_float32(const T* from, i64 n) {
    return load<Values>(from, n);
  }
  template <class T>
  static FUSE_FN Floats load_float16(const T* from, i64 n) {
    return from_halves(load<Halves>(from, n));
  }
  template <class T>
  static FUSE_FN Floats load_bfloat16(const T* from, i64 n) {
    return Values(as_upper_halves(load<Halves>(from, n)));
  }
  template <class T>
  FUSE_FN void store_float32(T* to, i64 n) const {
    store(value, to, n);
  }
  template <class T>
  FUSE_FN void store_float16(T* to, i64 n) const {
    store(halves(), to, n);
  }
  template <class T>
  FUSE_FN void store_bfloat16(T* to, i64 n) const {
    store(upper_halves(rounded_bfloat16()), to, n);
  }
  template <class T>
  FUSE_FN void store_rounded(T* to, i64 n) const {
    store(rounded, to, n);
  }

  // Two sets of bfloat16 that are neighbours in memory, one with the even elements and
  // one with the odd ones, so that no word moves.
  template <class T>
  static FUSE_FN void load_pair_bfloat16(Floats& even, Floats& odd,
                                         const T* from) {
    const Bits both = load<Bits>(from, count);
    even = Values(both << 16);
    odd = Values(both & 0xffff0000U);
  }
  template <class T>
  static FUSE_FN void store_pair_bfloat16(const Floats& even, const Floats& odd,
                                          T* to) {
    store(upper_halves(even.rounded_bfloat16(), odd.rounded_bfloat16()), to,
          count);
  }
  template <class T>
  static FUSE_FN void store_pair_rounded(const Floats& even, const Floats& odd,
                                         T* to) {
    store(upper_halves(even.nearest, odd.nearest), to, count);
  }
};

FUSE_FN Floats round_float16(Floats floats) {
  const Floats::Halves halves = floats.halves();
  return {Floats::from_halves(halves), halves};
}
FUSE_FN Floats round_bfloat16(Floats floats) {
  const Floats::Bits bits = floats.rounded_bfloat16();
  return {Floats::Values(bits), Floats::upper_halves(bits), bits};
}
FUSE_FN Floats round_result_bfloat16(Floats floats) {
  const Floats::Bits bits =
      Floats::nearest_bfloat16(Floats::Bits(floats.value));
  return {Floats::Values(bits & 0xffff0000U), Floats::upper_halves(bits), bits};
}

// An operation on floats, in each lane: the compiler turns them back into one
// instruction.
template <auto operation, class... Operands>
FUSE_FN Floats in_lanes(const Operands&... operands) {
  Floats::Values results;
  FUSE_UNROLLED
  for (int k = 0; k < Floats::count; ++k) {
    results[k] = operation(operands.value[k]...);
  }
  return results;
}

// The operations of kind `choice`: g++ does not always make a choice in each lane
// back into one instruction, and branches take far longer.
FUSE_FN Floats chosen(Floats::Bits which, Floats b, Floats c) {
  return Floats::Values((Floats::Bits(b.value) & which) |
                        (Floats::Bits(c.value) & ~which));
}
FUSE_FN Floats one_or_zero(Floats::Bits which) {
  return Floats::Values(which & bits_of(1.0f));
}
FUSE_FN Floats::Bits is_true(Floats a) {
  return Floats::Bits(a.value != Floats::Values{});
}
FUSE_FN Floats where_in_lanes(Floats a, Floats b, Floats c) {
  return chosen(is_true(a), b, c);
}
FUSE_FN Floats minimum_in_lanes(Floats a, Floats b) {
  return chosen(
      Floats::Bits(a.value != a.value) | Floats::Bits(a.value < b.value), a, b);
}
FUSE_FN Floats maximum_in_lanes(Floats a, Floats b) {
  return chosen(
      Floats::Bits(a.value != a.value) | Floats::Bits(a.value > b.value), a, b);
}
FUSE_FN Floats clamp_in_lanes(Floats a, Floats low, Floats high) {
  return minimum_in_lanes(maximum_in_lanes(a, low), high);
}
FUSE_FN Floats relu_in_lanes(Floats a) {
  return Floats::Values(Floats::Bits(a.value) &
                        ~Floats::Bits(a.value < Floats::Values{}));
}
FUSE_FN Floats sign_in_lanes(Floats a) {
  return one_or_zero(Floats::Bits(a.value > Floats::Values{})).value -
         one_or_zero(Floats::Bits(a.value < Floats::Values{})).value;
}
#define FUSE_COMPARISON(name, comparison)                         \
  FUSE_FN Floats name##_in_lanes(Floats a, Floats b) {            \
    return one_or_zero(Floats::Bits(a.value comparison b.value)); \
  }
FUSE_COMPARISON(eq, ==)
FUSE_COMPARISON(ne, !=)
FUSE_COMPARISON(lt, <)
FUSE_COMPARISON(le, <=)
FUSE_COMPARISON(gt, >)
FUSE_COMPARISON(ge, >=)
#undef FUSE_COMPARISON
FUSE_FN Floats isnan_in_lanes(Floats a) { return ne_in_lanes(a, a); }
FUSE_FN Floats isfinite_in_lanes(Floats a) {
  return one_or_zero(~is_true(a.value - a.value));
}
FUSE_FN Floats isinf_in_lanes(Floats a) {
  return one_or_zero(Floats::Bits(a.value == a.value) &
                     is_true(a.value - a.value));
}
FUSE_FN Floats logical_and_in_lanes(Floats a, Floats b) {
  return one_or_zero(is_true(a) & is_true(b));
}
FUSE_FN Floats logical_or_in_lanes(Floats a, Floats b) {
  return one_or_zero(is_true(a) | is_true(b));
}
FUSE_FN Floats logical_xor_in_lanes(Floats a, Floats b) {
  return one_or_zero(is_true(a) ^ is_true(b));
}
FUSE_FN Floats logical_not_in_lanes(Floats a) {
  return one_or_zero(~is_true(a));
}

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSE_LANES
#endif  // FUSEBOOK_LANES_H
