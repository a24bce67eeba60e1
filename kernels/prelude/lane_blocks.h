// What blocks.h has, for many floats: compilers would widen and narrow the codes
// step by step. Bit-identical. In kernels that have both, behind lanes.h and
// blocks.h; never included by the library itself, only its text is.
#ifndef FUSEBOOK_LANE_BLOCKS_H
#define FUSEBOOK_LANE_BLOCKS_H

#if defined(FUSE_LANES)
namespace fuse::FUSE_DEVICE {

// A code for each lane. Instructions take no vector of less than 16 bytes.
struct LaneCodes {
  static constexpr int count = FUSE_LANES;
  typedef Floats::Values Values;
  typedef Floats::Bits Bits;
  typedef int Ints __attribute__((vector_size(4 * FUSE_LANES)));
#if defined(__clang__)
  typedef bits8 Bytes __attribute__((vector_size(FUSE_LANES)));
  typedef signed char SignedBytes __attribute__((vector_size(FUSE_LANES)));
#else
  typedef char Bytes __attribute__((vector_size(16)));
#endif

  Bytes bytes;

  static FUSE_FN LaneCodes load(const bits8* from, i64 n) {
    if (n == count) return {load_all(from)};
    LaneCodes codes = {};
    load_some(codes.bytes, from, n);
    return codes;
  }

#if defined(__clang__)
  FUSE_FN Ints with_sign() const {
    return __builtin_convertvector(SignedBytes(bytes), Ints);
  }
  FUSE_FN Ints without_sign() const {
    return __builtin_convertvector(bytes, Ints);
  }
#elif FUSE_LANES == 16
  FUSE_FN Ints with_sign() const {
    return Ints(__builtin_ia32_pmovsxbd512_mask(bytes, Ints{}, -1));
  }
  FUSE_FN Ints without_sign() const {
    return Ints(__builtin_ia32_pmovzxbd512_mask(bytes, Ints{}, -1));
  }
#else
  FUSE_FN Ints with_sign() const {
    return Ints(__builtin_ia32_pmovsxbd256(bytes));
  }
  FUSE_FN Ints without_sign() const {
    return Ints(__builtin_ia32_pmovzxbd256(bytes));
  }
#endif

 private:
#if !defined(__clang__) && FUSE_LANES == 8
  // Half a vector, by way of a register: what was just stored in parts is slow to
  // load as a whole.
  typedef long long Halves __attribute__((vector_size(16)));
  static FUSE_FN Bytes load_all(const bits8* from) {
    long long first = 0;
    FUSE_BUILTIN(memcpy)(&first, from, count);
    return Bytes(Halves{first, 0});
  }
#else
  static FUSE_FN Bytes load_all(const bits8* from) {
    Bytes all;
    FUSE_BUILTIN(memcpy)(&all, from, count);
    return all;
  }
#endif
  // Once at the end of a tensor. The empty instruction keeps compilers from
  // optimizing the loop more than it is worth.
  static inline __attribute__((noinline)) void load_some(Bytes& to,
                                                         const bits8* from,
                                                         i64 n) {
    for (i64 k = 0; k < n; ++k) {
      to[k] = from[k];
      asm volatile("" ::: "memory");
    }
  }
};

FUSE_FN Floats::Bits at_least_one(Floats::Bits root) {
  const Floats::Bits one = Floats::Bits{} + 0x3f800000U;
  return root > one ? root : one;
}

FUSE_FN Floats decode(SignedCodes, LaneCodes stored, float unit) {
  typedef LaneCodes::Values Values;
  typedef LaneCodes::Bits Bits;
  const LaneCodes::Ints code = stored.with_sign();
  // The shift takes the sign away.
  const Bits root = Bits(__builtin_convertvector(code, Values)) << 1;
  const Bits share = at_least_one(root) - 0x3f800000U;
  const Bits value = Bits(Values(share) * unit) | (Bits(code) & 0x80000000U);
  return Values(code == -128 ? Bits{} + 0x7fc00000U : value);
}
FUSE_FN Floats decode(UnsignedCodes, LaneCodes stored, float unit) {
  typedef LaneCodes::Values Values;
  typedef LaneCodes::Bits Bits;
  const LaneCodes::Ints code = stored.without_sign();
  const Bits root = Bits(__builtin_convertvector(code, Values)) << 2;
  const Bits some = Bits(Values(root - 0xbe800000U) * unit);
  const Bits value = code == 0 ? Bits{} : some;
  return Values(code == 255 ? Bits{} + 0x7fc00000U : value);
}

#if FUSE_LANES == 16
// The code of each element is the lowest byte.
FUSE_FN Floats::Bits coded(SignedCodes, Floats::Values x, float factor) {
  typedef Floats::Values Values;
  typedef Floats::Bits Bits;
  const Bits size = Bits(x) & 0x7fffffffU;
  const Bits share = Bits(Values(size) * factor);
  const Bits least = at_least_one((share >> 1) + 0x1fc00000U);
  const Bits some = size == 0U ? Bits{} : least;
  const Values root = Values(some | (Bits(x) & 0x80000000U));
  return Bits(root + round_to_bits);
}
FUSE_FN Floats::Bits coded(UnsignedCodes, Floats::Values x, float factor) {
  typedef Floats::Values Values;
  typedef Floats::Bits Bits;
  const Bits least = at_least_one((Bits(x * factor) >> 2) + 0x2fa00000U);
  const Values root = Values(Bits(x) == 0U ? Bits{} : least);
  return Bits(root + round_to_bits);
}

// 32 elements: the smallest block has that many.
template <class Codes>
FUSE_FN void encode_32(const float* from, float factor, bits8* to) {
  for (int k = 0; k < 32; k += 16) {
    const Floats x = Floats::load_float32(from + k, 16);
    const Floats::Bits bits = coded(Codes(), x.value, factor);
#if defined(__clang__)
    const auto codes = __builtin_convertvector(bits, LaneCodes::Bytes);
#else
    const LaneCodes::Bytes codes = __builtin_ia32_pmovdb512_mask(
        LaneCodes::Ints(bits), LaneCodes::Bytes{}, -1);
#endif
    FUSE_BUILTIN(memcpy)(to + k, &codes, 16);
  }
}
#else
typedef LaneCodes::Ints Ints;
typedef short Shorts __attribute__((vector_size(32)));

// The code of each element as a whole number, the same as in blocks.h while the CPU
// rounds to nearest. psignd negates a number where its second operand is negative,
// and makes it zero where that is zero: once for both zeros, and once for the sign.
FUSE_FN Ints coded(SignedCodes, Floats::Values x, float factor) {
  typedef Floats::Values Values;
  typedef Floats::Bits Bits;
  const Bits size = Bits(x) & 0x7fffffffU;
  const Bits share = Bits(Values(size) * factor);
  const Bits least = at_least_one((share >> 1) + 0x1fc00000U);
  const Ints steps = __builtin_ia32_cvtps2dq256(Values(least));
  const Ints some = __builtin_ia32_psignd256(steps, Ints(size));
  return __builtin_ia32_psignd256(some, Ints(x));
}
FUSE_FN Ints coded(UnsignedCodes, Floats::Values x, float factor) {
  typedef Floats::Values Values;
  typedef Floats::Bits Bits;
  const Bits least = at_least_one((Bits(x * factor) >> 2) + 0x2fa00000U);
  // x is never negative here.
  return __builtin_ia32_psignd256(__builtin_ia32_cvtps2dq256(Values(least)),
                                  Ints(x));
}

FUSE_FN Ints packed(SignedCodes, Shorts a, Shorts b) {
  return Ints(__builtin_ia32_packsswb256(a, b));
}
FUSE_FN Ints packed(UnsignedCodes, Shorts a, Shorts b) {
  return Ints(__builtin_ia32_packuswb256(a, b));
}

// 32 elements: the smallest block has that many. Packing works within each half of
// a register, so the words are put in order at the end.
template <class Codes>
FUSE_FN void encode_32(const float* from, float factor, bits8* to) {
  const auto eight = [&](int k) __attribute__((always_inline)) {
    return coded(Codes(), Floats::load_float32(from + k, 8).value, factor);
  };
  const Shorts first = __builtin_ia32_packssdw256(eight(0), eight(8));
  const Shorts second = __builtin_ia32_packssdw256(eight(16), eight(24));
  const Ints codes = __builtin_ia32_permvarsi256(packed(Codes(), first, second),
                                                 Ints{0, 4, 1, 5, 2, 6, 3, 7});
  FUSE_BUILTIN(memcpy)(to, &codes, 32);
}
#endif

// n neighbours of one block, whole groups of 32.
template <class Codes>
FUSE_FN void encode_lanes(const float* from, i64 n, float factor, bits8* to) {
  for (i64 k = 0; k < n; k += 32) {
    encode_32<Codes>(from + k, factor, to + k);
  }
}

// The largest of all lanes.
FUSE_FN unsigned largest_of(Floats::Bits sizes) {
  unsigned largest = 0;
  FUSE_UNROLLED
  for (int k = 0; k < Floats::count; ++k) {
    largest = sizes[k] > largest ? sizes[k] : largest;
  }
  return largest;
}
FUSE_FN Floats::Bits sizes_of(SignedCodes, Floats::Values x) {
  return Floats::Bits(x) & 0x7fffffffU;
}
FUSE_FN Floats::Bits sizes_of(UnsignedCodes, Floats::Values x) {
  return Floats::Bits(x);
}

}  // namespace fuse::FUSE_DEVICE
#endif  // FUSE_LANES

#endif  // FUSEBOOK_LANE_BLOCKS_H
