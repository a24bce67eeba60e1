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
  static FUSE_FN LaneCodes lowest_of(Bits bits) {
    return {__builtin_convertvector(bits, Bytes)};
  }
  FUSE_FN void store(bits8* to) const {
    FUSE_BUILTIN(memcpy)(to, &bytes, count);
  }
#elif FUSE_LANES == 16
  FUSE_FN Ints with_sign() const {
    return Ints(__builtin_ia32_pmovsxbd512_mask(bytes, Ints{}, -1));
  }
  FUSE_FN Ints without_sign() const {
    return Ints(__builtin_ia32_pmovzxbd512_mask(bytes, Ints{}, -1));
  }
  static FUSE_FN LaneCodes lowest_of(Bits bits) {
    return {__builtin_ia32_pmovdb512_mask(Ints(bits), Bytes{}, -1)};
  }
  FUSE_FN void store(bits8* to) const {
    FUSE_BUILTIN(memcpy)(to, &bytes, count);
  }
#else
  FUSE_FN Ints with_sign() const {
    return Ints(__builtin_ia32_pmovsxbd256(bytes));
  }
  FUSE_FN Ints without_sign() const {
    return Ints(__builtin_ia32_pmovzxbd256(bytes));
  }
  static FUSE_FN LaneCodes lowest_of(Bits bits) {
    typedef char All __attribute__((vector_size(32)));
    const All chosen = __builtin_shuffle(
        All(bits),
        All{0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28,
            0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28});
    typedef long long Quarters __attribute__((vector_size(32)));
    return {Bytes(Halves{Quarters(chosen)[0], 0})};
  }
  FUSE_FN void store(bits8* to) const {
    const long long first = Halves(bytes)[0];
    FUSE_BUILTIN(memcpy)(to, &first, count);
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

FUSE_FN LaneCodes encode(SignedCodes, Floats::Values x, float factor) {
  typedef LaneCodes::Values Values;
  typedef LaneCodes::Bits Bits;
  const Bits size = Bits(x) & 0x7fffffffU;
  const Bits share = Bits(Values(size) * factor);
  const Bits least = at_least_one((share >> 1) + 0x1fc00000U);
  const Bits some = size == 0U ? Bits{} : least;
  const Values root = Values(some | (Bits(x) & 0x80000000U));
  return LaneCodes::lowest_of(Bits(root + round_to_bits));
}
FUSE_FN LaneCodes encode(UnsignedCodes, Floats::Values x, float factor) {
  typedef LaneCodes::Values Values;
  typedef LaneCodes::Bits Bits;
  const Bits least = at_least_one((Bits(x * factor) >> 2) + 0x2fa00000U);
  const Values root = Values(Bits(x) == 0U ? Bits{} : least);
  return LaneCodes::lowest_of(Bits(root + round_to_bits));
}

FUSE_FN Floats decode(SignedCodes, LaneCodes stored, float unit) {
  typedef LaneCodes::Values Values;
  typedef LaneCodes::Bits Bits;
  const LaneCodes::Ints code = stored.with_sign();
  const LaneCodes::Ints steps = code < 0 ? -code : code;
  const Bits root = Bits(__builtin_convertvector(steps, Values)) << 1;
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

// n neighbours of one block.
template <class Codes>
FUSE_FN void encode_lanes(const float* from, i64 n, float factor, bits8* to) {
  i64 k = 0;
  for (; k + Floats::count <= n; k += Floats::count) {
    const Floats x = Floats::load_float32(from + k, Floats::count);
    encode(Codes(), x.value, factor).store(to + k);
  }
  encode_run<Codes>(from + k, n - k, factor, to + k);
}

}  // namespace fuse::FUSE_DEVICE
#endif  // FUSE_LANES

#endif  // FUSEBOOK_LANE_BLOCKS_H
