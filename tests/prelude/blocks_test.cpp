#include "fusebook/prelude/blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fusebook/ops/float16.h"

using fuse::block_size;
using fuse::bytes_in_blocks;
using fuse::device::bits8;
using fuse::device::Blocks;
using fuse::device::InBlocksOf;
using fuse::device::SignedCodes;
using fuse::device::UnsignedCodes;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// The codes by their definition, in float64.
template <class Codes>
struct Definition;
template <>
struct Definition<SignedCodes> {
  static constexpr int root = 2;
  static constexpr int most = 127;
  static int steps(bits8 code) { return std::abs(int(std::int8_t(code))); }
  static bool negative(bits8 code) { return std::int8_t(code) < 0; }
};
template <>
struct Definition<UnsignedCodes> {
  static constexpr int root = 4;
  static constexpr int most = 254;
  static int steps(bits8 code) { return code; }
  static bool negative(bits8) { return false; }
};

// What so many steps stand for: between powers of two, the exponent grows as the
// steps do, and between its integers the number is linear.
template <class Codes>
double power(double steps) {
  constexpr int root = Definition<Codes>::root;
  const int octave = std::ilogb(steps);
  const double exponent =
      root * octave + root * (steps / std::ldexp(1.0, octave) - 1);
  const double whole = std::floor(exponent);
  return std::ldexp(1 + (exponent - whole), int(whole));
}

// Its inverse.
template <class Codes>
double root(double value) {
  constexpr int root = Definition<Codes>::root;
  const int exponent = std::ilogb(value);
  const double steps =
      (exponent + value / std::ldexp(1.0, exponent) - 1) / root;
  const double octave = std::floor(steps);
  return std::ldexp(1 + (steps - octave), int(octave));
}

template <class Codes>
double decoded(bits8 code, float unit) {
  const int steps = Definition<Codes>::steps(code);
  if (code == Codes::nan) return not_a_number;
  if (steps == 0) return 0;
  const double size = double(float(power<Codes>(steps) * double(unit)));
  return Definition<Codes>::negative(code) ? -size : size;
}

// All numbers that have 16 bits, as floats.
std::vector<float> numbers_of_16_bits() {
  std::vector<float> all;
  for (int bits = 0; bits < 0x10000; ++bits) {
    fuse::Float16 half;
    fuse::BFloat16 brain;
    half.bits = brain.bits = std::uint16_t(bits);
    all.push_back(float(half));
    all.push_back(float(brain));
  }
  return all;
}

std::vector<float> scales() {
  std::vector<float> all;
  for (int exponent = -80; exponent < 128; exponent += 13) {
    for (const float size : {1.0f, 1.2345678f, 1.6666666f, 1.9999999f}) {
      all.push_back(std::ldexp(size, exponent));
    }
  }
  return all;
}

template <class Codes>
struct Coded {
  std::vector<bits8> bytes;
  float scale = 0;
  std::vector<float> values;

  explicit Coded(const std::vector<float>& from)
      : bytes(std::size_t(bytes_in_blocks(fuse::i64(from.size()))), 0xcd),
        values(from.size()) {
    const Blocks<Codes> blocks(bytes.data());
    fuse::device::encode_block(from.data(), fuse::i64(from.size()), blocks, 0);
    scale = *blocks.scale(0);
    fuse::device::decode_block(blocks, 0, fuse::i64(from.size()),
                               values.data());
  }
  bits8 code(std::size_t i) const { return bytes[4 + i]; }
};

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

float random_size(std::uint32_t& state) {
  state = state * 1664525 + 1013904223;
  const float fraction = float(state >> 8) * 0x1p-24f;
  return std::ldexp(0.5f + fraction, -int(state % 24));
}

}  // namespace

TEST_CASE_TEMPLATE("every code decodes to what it stands for", Codes,
                   SignedCodes, UnsignedCodes) {
  CHECK(power<Codes>(Definition<Codes>::most) == double(Codes::top));
  for (const float scale : scales()) {
    const float unit = scale / Codes::top;
    for (int code = 0; code < 256; ++code) {
      const double value = Codes::decode(bits8(code), unit);
      if (!same(value, decoded<Codes>(bits8(code), unit))) {
        FAIL("code " << code << " and scale " << scale);
      }
    }
  }
}

TEST_CASE_TEMPLATE("every number of 16 bits gets the nearest code", Codes,
                   SignedCodes, UnsignedCodes) {
  const std::vector<float> numbers = numbers_of_16_bits();
  for (const float scale : {1.0f, 1.2345678f, 3e-7f, 65504.0f, 0x1p-80f}) {
    const float factor = Codes::top / scale;
    for (const float x : numbers) {
      if (Codes::size(x) >= fuse::device::no_size) continue;
      if (std::abs(x) > scale) continue;
      const bits8 code = Codes::encode(x, factor);
      const double share = double(std::abs(x) * factor);
      const double steps = share > 0 ? root<Codes>(share) : 0;
      const double nearest = std::max(steps, x == 0 ? 0.0 : 1.0);
      const double off = Definition<Codes>::steps(code) - nearest;
      const bool signs = x == 0 || Definition<Codes>::negative(code) == (x < 0);
      if (std::abs(off) > 0.5001 || !signs) FAIL(x << " of " << scale);
    }
  }
}

TEST_CASE_TEMPLATE("decoded elements have the same codes and scale", Codes,
                   SignedCodes, UnsignedCodes) {
  for (const float scale : scales()) {
    std::vector<float> values;
    const float unit =
        fuse::device::scale_of<Codes>(std::bit_cast<unsigned>(scale)) /
        Codes::top;
    for (int code = 0; code < 256; ++code) {
      values.push_back(Codes::decode(bits8(code), unit));
    }
    const Coded<Codes> again(values);
    CHECK(again.scale == unit * Codes::top);
    for (int code = 0; code < 256; ++code) {
      if (again.code(std::size_t(code)) != code) FAIL(code << " of " << scale);
    }
  }
}

namespace {

// The bounds that blocks.h states: by 1/63 from the share `from` of the scale on, and
// by about twice as much for each `part` below that; nothing is said below `least`.
double bound(double share, double from, double part, double least) {
  double limit = 1.0 / 63;
  while (from > least && share < from) {
    limit = 2 * limit / (1 - limit);
    from /= part;
  }
  return from > least ? limit * (1 + 1e-6) : HUGE_VAL;
}

}  // namespace

TEST_CASE("how wrong elements are at most") {
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> sizes(block_size);
    for (float& size : sizes) size = random_size(state);
    const float largest = *std::max_element(sizes.begin(), sizes.end());
    const auto error = [&](float value, std::size_t i) {
      return std::abs(double(value) - sizes[i]) / sizes[i];
    };
    std::vector<float> negative = sizes;
    for (float& size : negative) size = -size;
    const Coded<SignedCodes> with_sign(sizes);
    const Coded<SignedCodes> below(negative);
    const Coded<UnsignedCodes> without(sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CHECK(below.values[i] == -with_sign.values[i]);
      const double share = double(sizes[i]) / largest;
      const double most = bound(share, 16.0 / 63, 4, 0x1p-12);
      CHECK(error(with_sign.values[i], i) <= most);
      const double most_without = bound(share, 2.0 / 31, 16, 0x1p-22);
      CHECK(error(without.values[i], i) <= most_without);
    }
  }
}

TEST_CASE_TEMPLATE("the scale is the largest finite magnitude", Codes,
                   SignedCodes, UnsignedCodes) {
  std::uint32_t state = 7;
  for (std::size_t n : {1, 2, 15, 16, 17, 255, 256}) {
    std::vector<float> from(n);
    for (float& each : from) each = random_size(state);
    from[n / 2] = 2.5f;
    const Coded<Codes> coded(from);
    CHECK(coded.scale == 2.5f);
    CHECK(coded.values[n / 2] == 2.5f);
  }
  // All but few floats are what they give back, multiplied and divided.
  for (int k = 0; k < 1000; ++k) {
    const float largest = random_size(state);
    const Coded<Codes> coded({largest});
    CHECK(std::abs(coded.scale - largest) <= largest * 0x1p-23f);
    CHECK(coded.values[0] == coded.scale);
  }
}

TEST_CASE_TEMPLATE("the largest floats have a scale", Codes, SignedCodes,
                   UnsignedCodes) {
  float each = std::numeric_limits<float>::max();
  for (int k = 0; k < 200; ++k, each = std::nextafter(each, 0.0F)) {
    const Coded<Codes> coded({each, each / 4, 0.0f});
    CHECK(std::abs(coded.scale - each) <= each * 0x1p-22f);
    CHECK(coded.values[0] == coded.scale);
    CHECK(std::abs(coded.values[1] - each / 4) <= each / 32);
    CHECK(coded.values[2] == 0);
    CHECK(Coded<Codes>(coded.values).scale == coded.scale);
  }
}

TEST_CASE_TEMPLATE("zero stays zero, and nothing else becomes it", Codes,
                   SignedCodes, UnsignedCodes) {
  const float least = std::numeric_limits<float>::denorm_min();
  const Coded<Codes> coded({0.0f, -0.0f, 1.0f, least, 1e-30f, 1e-12f});
  CHECK(same(coded.values[0], 0.0));
  CHECK(same(coded.values[1], 0.0));
  for (std::size_t i = 2; i < 6; ++i) CHECK(coded.values[i] > 0);
  CHECK(coded.values[3] == 1.0f / Codes::top);
  const Coded<Codes> zeros({0.0f, -0.0f});
  CHECK(zeros.values == std::vector<float>{0.0f, 0.0f});
  CHECK(zeros.code(0) == 0);
  CHECK(zeros.code(1) == 0);
  const Coded<Codes> tiny({least, 0.0f});
  CHECK(tiny.values[0] > 0);
  CHECK(tiny.values[0] < 0x1p-80f);
  CHECK(tiny.values[1] == 0);
}

TEST_CASE_TEMPLATE("what is not finite spoils nothing else", Codes, SignedCodes,
                   UnsignedCodes) {
  const std::vector<float> good = {0.5f, 0.0f, 0.25f, 1e-6f};
  const Coded<Codes> expected(good);
  for (const float bad : {not_a_number, -not_a_number, infinity, -infinity}) {
    std::vector<float> from = good;
    from.push_back(bad);
    const Coded<Codes> coded(from);
    CHECK(coded.scale == expected.scale);
    CHECK(coded.code(4) == Codes::nan);
    CHECK(std::isnan(coded.values[4]));
    for (std::size_t i = 0; i < good.size(); ++i) {
      CHECK(coded.code(i) == expected.code(i));
    }
  }
  const Coded<Codes> nothing_else({not_a_number, infinity});
  CHECK(nothing_else.scale == expected.scale * 0 + 0x1p-80f);
  CHECK(std::isnan(nothing_else.values[0]));
}

TEST_CASE("what must not be negative becomes NaN") {
  const Coded<UnsignedCodes> coded({1.0f, -1e-30f, -2.0f, 0.25f});
  CHECK(coded.scale == 1.0f);
  CHECK(coded.values[0] == 1.0f);
  CHECK(std::isnan(coded.values[1]));
  CHECK(std::isnan(coded.values[2]));
  CHECK(coded.code(3) == Coded<UnsignedCodes>({1.0f, 0.25f}).code(1));
}

TEST_CASE("blocks lie behind each other, and only the last may be shorter") {
  CHECK(bytes_in_blocks(0) == 0);
  CHECK(bytes_in_blocks(1) == 5);
  CHECK(bytes_in_blocks(256) == 260);
  CHECK(bytes_in_blocks(257) == 265);
  CHECK(bytes_in_blocks(257, 32) == 257 + 9 * 4);
  CHECK(bytes_in_blocks(257, 512) == 261);
}

TEST_CASE_TEMPLATE("a block is coded as it would be alone", Codes, SignedCodes,
                   InBlocksOf<SignedCodes, 32>, InBlocksOf<SignedCodes, 2048>) {
  const fuse::i64 size = Codes::block;
  const fuse::i64 numel = 2 * size + 3;
  std::vector<bits8> bytes(std::size_t(bytes_in_blocks(numel, size)) + 1, 0xcd);
  const Blocks<Codes> blocks(bytes.data());
  std::vector<float> from;
  from.resize(std::size_t(numel));
  std::uint32_t state = 3;
  for (float& each : from) each = random_size(state) - 0.25f;
  for (fuse::i64 block = 0; block < 3; ++block) {
    const fuse::i64 first = block * size;
    const fuse::i64 n = std::min(size, numel - first);
    fuse::device::encode_block(from.data() + first, n, blocks, block);
  }
  CHECK(bytes.back() == 0xcd);
  for (fuse::i64 i = 0; i < numel; ++i) {
    const auto first = from.begin() + i / size * size;
    const auto n = std::min(size, numel - i / size * size);
    const Coded<SignedCodes> alone(std::vector<float>(first, first + n));
    if (blocks[i] != alone.values[std::size_t(i % size)]) FAIL(i);
  }
}
