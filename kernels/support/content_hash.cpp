#include "fusebook/support/content_hash.h"

#include <algorithm>
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
  ContentHash hash(seed);
  hash.add(bytes);
  return hash.value();
}

ContentHash::ContentHash(std::uint64_t seed) : seed_(seed) {
  for (std::size_t i = 0; i < lane_count; ++i) {
    lanes_[i] = seed + (i + 1) * odd;
  }
}

void ContentHash::add(std::string_view bytes) {
  const std::size_t filled = size_ % block_size;
  size_ += bytes.size();
  if (filled > 0) {
    const std::string_view first = bytes.substr(0, block_size - filled);
    std::copy(first.begin(), first.end(), tail_.begin() + filled);
    if (filled + first.size() < block_size) return;
    mix_block(lanes_, tail_.data());
    bytes.remove_prefix(first.size());
  }
  Lanes lanes = lanes_;
  for (; bytes.size() >= block_size; bytes.remove_prefix(block_size)) {
    mix_block(lanes, bytes.data());
  }
  lanes_ = lanes;
  std::copy(bytes.begin(), bytes.end(), tail_.begin());
}

std::uint64_t ContentHash::value() const {
  Lanes lanes = lanes_;
  std::array<char, block_size> tail = {};
  std::copy_n(tail_.begin(), size_ % block_size, tail.begin());
  mix_block(lanes, tail.data());
  return fold(lanes, size_ + seed_);
}

std::string hex_digits(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); value != 0; ++digit, value >>= 4) {
    *digit = "0123456789abcdef"[value & 15U];
  }
  return text;
}

}  // namespace fuse
