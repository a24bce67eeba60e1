#include "fusebook/support/content_hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace fuse {
namespace {

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
constexpr std::size_t lane_count = 8;
constexpr std::size_t block_size = lane_count * sizeof(std::uint64_t);
using Lanes = std::array<std::uint64_t, lane_count>;

// Every step is invertible, so that two blocks that differ in one lane never
// leave the same state. Eight lanes keep the multiplier busy.
void mix_block(Lanes& lanes, const char* block) {
#pragma GCC unroll 8
  for (std::size_t i = 0; i < lane_count; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, block + i * sizeof(word), sizeof(word));
    lanes[i] = std::rotl((lanes[i] ^ word) * odd, 29);
  }
}

std::uint64_t fold(const Lanes& lanes, std::uint64_t start) {
  std::uint64_t hash = start;
  for (const std::uint64_t lane : lanes) {
    hash = (hash ^ lane) * odd;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

std::uint64_t content_hash(std::string_view bytes, std::uint64_t seed) {
  Lanes lanes;
  for (std::size_t i = 0; i < lane_count; ++i) lanes[i] = seed + (i + 1) * odd;
  const std::uint64_t size = bytes.size();
  for (; bytes.size() >= block_size; bytes.remove_prefix(block_size)) {
    mix_block(lanes, bytes.data());
  }
  std::array<char, block_size> tail = {};
  // An empty text may have no address.
  if (!bytes.empty()) std::memcpy(tail.data(), bytes.data(), bytes.size());
  mix_block(lanes, tail.data());
  return fold(lanes, size + seed);
}

std::string hex_digits(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); value != 0; ++digit, value >>= 4) {
    *digit = "0123456789abcdef"[value & 15U];
  }
  return text;
}

}  // namespace fuse
