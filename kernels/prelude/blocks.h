// Elements of 8 bits, for the states of optimizers: blocks of neighbours (256, or
// another power of two), a code of one byte each, behind one float for all of them,
// their scale. Only the last block of a tensor may be shorter. The library includes
// this, and its text is part of kernels that touch such elements.
//
// The scale is the largest finite magnitude among the elements of a block, and a
// code is the root of an element's share of it, in steps: with a sign the square
// root, in 127 steps; where nothing is negative the fourth root, in 254. The root
// is that of J. Blinn ("Floating-Point Tricks", 1997): half the bits of a float
// are those of a root that is linear between powers of two. So there is nothing to
// look up, it vectorises, it can be taken back exactly, and all machines agree.
// That roots suit these states is from FlashOptim (arXiv:2602.23349), blocks with
// scales of their own from Dettmers et al. (arXiv:2110.02861).
//
// What has a quarter of the scale or more (exactly: 16/63) is wrong by at most
// 1/63 of itself, and by about twice as much for each quarter below that; without
// a sign, 2/31 of the scale, and a sixteenth. Zero stays zero, and nothing else
// becomes zero: it decodes to 1/16128 of the scale, or 1/4160749568, at least. One
// code means NaN: infinities become it, and negative numbers where nothing may be
// negative. The codes of decoded elements, and their scale, are the same again.
// Elements below 2^-80 lose precision, as if one of that size were in their block.
#ifndef FUSEBOOK_BLOCKS_H
#define FUSEBOOK_BLOCKS_H

#ifndef FUSEBOOK_HALF_H  // a kernel has no files to include
#include "fusebook/prelude/half.h"
#endif

namespace fuse {

// Unless told.
constexpr i64 block_size = 256;
#if !defined(FUSE_GPU)
// How many blocks a tensor of so many elements has, and its bytes.
constexpr i64 blocks_in(i64 numel, i64 size = block_size) {
  return (numel + size - 1) / size;
}
constexpr i64 bytes_in_blocks(i64 numel, i64 size = block_size) {
  return numel + blocks_in(numel, size) * 4;
}
#endif
namespace FUSE_DEVICE {

typedef unsigned char bits8;

// Added to a float of up to 22 bits, it leaves that one, rounded, in the lowest
// bits.
constexpr float round_to_bits = 0x1.8p23f;
// The bits of infinity: sizes from here on have no share of a scale.
constexpr unsigned no_size = 0x7f800000U;

// `size` has the order of magnitudes; `encode` takes what is smaller than
// `no_size`, and top / scale; `decode` takes scale / top.
struct SignedCodes {
  static constexpr i64 block = block_size;
  static constexpr float top = 16128.0f;  // what 127 stands for
  static constexpr bits8 nan = 128;

  static FUSE_FN unsigned size(float x) { return bits_of(x) & 0x7fffffffU; }

  static FUSE_FN bits8 encode(float x, float factor) {
    const float share = float_of(size(x)) * factor;
    const float root = float_of((bits_of(share) >> 1) + 0x1fc00000U);
    const float least = root < 1.0f ? 1.0f : root;
    const float some = int(size(x)) == 0 ? 0.0f : least;
    const unsigned sign = bits_of(x) & 0x80000000U;
    return bits8(bits_of(float_of(bits_of(some) | sign) + round_to_bits));
  }

  static FUSE_FN float decode(bits8 stored, float unit) {
    const int code = (stored ^ 128) - 128;  // with its sign
    const int steps = code < 0 ? -code : code;
    const unsigned root = bits_of(float(steps)) << 1;
    const unsigned share = root < 0x3f800000U ? 0U : root - 0x3f800000U;
    const unsigned sign = unsigned(code) & 0x80000000U;
    const unsigned value = bits_of(float_of(share) * unit) | sign;
    return float_of(steps == 128 ? 0x7fc00000U : value);
  }
};

// Nothing is negative: the bits of what is are larger than any size.
struct UnsignedCodes {
  static constexpr i64 block = block_size;
  static constexpr float top = 4160749568.0f;  // what 254 stands for
  static constexpr bits8 nan = 255;

  static FUSE_FN unsigned size(float x) { return bits_of(x); }

  static FUSE_FN bits8 encode(float x, float factor) {
    const float root = float_of((bits_of(x * factor) >> 2) + 0x2fa00000U);
    const float least = root < 1.0f ? 1.0f : root;
    const float some = int(size(x)) == 0 ? 0.0f : least;
    return bits8(bits_of(some + round_to_bits));
  }

  static FUSE_FN float decode(bits8 stored, float unit) {
    const int code = stored;
    const unsigned share = (bits_of(float(code)) << 2) - 0xbe800000U;
    const unsigned value = code == 0 ? 0U : bits_of(float_of(share) * unit);
    return float_of(code == 255 ? 0x7fc00000U : value);
  }
};

// The same in blocks of another size.
template <class Codes, int size>
struct InBlocksOf : Codes {
  static constexpr i64 block = size;
};

// Of a block whose largest size is this one. What is encoded again has the same
// scale: only few floats differ from what `top` makes of a quotient by it. Of the
// largest float that would be infinity; it takes the scale of the one before it.
template <class Codes>
FUSE_FN float scale_of(unsigned largest) {
  const float size = float_of(largest < 0x7f7fffffU ? largest : 0x7f7ffffeU);
  const float scale = size < 0x1p-80f ? 0x1p-80f : size;
  return scale / Codes::top * Codes::top;
}

// For blocks that have what has no size: a negative zero is zero.
template <class Codes>
FUSE_FN unsigned finite_size(float x) {
  const unsigned size = Codes::size(x);
  return size < no_size ? size : 0U;
}
template <class Codes>
FUSE_FN bits8 encode_any(float x, float factor) {
  if (x == 0.0f) return 0;
  return Codes::size(x) < no_size ? Codes::encode(x, factor) : Codes::nan;
}

// The elements of a tensor. On a CPU the address may be any.
template <class Codes>
struct Blocks {
  // Of a whole block, with its scale.
  static constexpr i64 bytes = Codes::block + 4;

  bits8* address;

  FUSE_FN explicit Blocks(void* first) : address(static_cast<bits8*>(first)) {}

  FUSE_FN bits8* codes(i64 block) const { return address + block * bytes + 4; }
  FUSE_FN Unaligned<float>* scale(i64 block) const {
    return reinterpret_cast<Unaligned<float>*>(address + block * bytes);
  }
  FUSE_FN float unit(i64 block) const { return *scale(block) / Codes::top; }

  FUSE_FN float operator[](i64 i) const {
    const i64 block = i / Codes::block;
    return Codes::decode(codes(block)[i % Codes::block], unit(block));
  }
};

#if !defined(FUSE_GPU)  // gpu_blocks.h has threads for the same
// n neighbours of one block.
template <class Codes>
FUSE_FN void decode_run(const bits8* codes, i64 n, float unit, float* to) {
  FUSE_INDEPENDENT
  for (i64 k = 0; k < n; ++k) to[k] = Codes::decode(codes[k], unit);
}
template <class Codes>
FUSE_FN void encode_run(const float* from, i64 n, float factor, bits8* codes) {
  FUSE_INDEPENDENT
  for (i64 k = 0; k < n; ++k) codes[k] = Codes::encode(from[k], factor);
}
template <class Codes>
FUSE_FN unsigned largest_size(const float* from, i64 n) {
  unsigned largest = 0;
  FUSE_INDEPENDENT
  for (i64 k = 0; k < n; ++k) {
    const unsigned size = Codes::size(from[k]);
    largest = size > largest ? size : largest;
  }
  return largest;
}

// The n elements of a block.
template <class Codes>
FUSE_FN void decode_block(const Blocks<Codes> from, i64 block, i64 n,
                          float* to) {
  decode_run<Codes>(from.codes(block), n, from.unit(block), to);
}

// Rarely needed: compilers spend no time on making it fast.
template <class Codes>
static inline __attribute__((noinline, cold)) void encode_any_block(
    const float* from, i64 n, const Blocks<Codes> to, i64 block) {
  unsigned largest = 0;
  for (i64 k = 0; k < n; ++k) {
    const unsigned size = finite_size<Codes>(from[k]);
    largest = size > largest ? size : largest;
  }
  const float scale = scale_of<Codes>(largest);
  *to.scale(block) = scale;
  for (i64 k = 0; k < n; ++k) {
    to.codes(block)[k] = encode_any<Codes>(from[k], Codes::top / scale);
  }
}

template <class Codes>
FUSE_FN void encode_block(const float* from, i64 n, const Blocks<Codes> to,
                          i64 block) {
  const unsigned largest = largest_size<Codes>(from, n);
  if (largest >= no_size) return encode_any_block(from, n, to, block);
  const float scale = scale_of<Codes>(largest);
  *to.scale(block) = scale;
  encode_run<Codes>(from, n, Codes::top / scale, to.codes(block));
}
#endif

}  // namespace FUSE_DEVICE
}  // namespace fuse

#endif  // FUSEBOOK_BLOCKS_H
