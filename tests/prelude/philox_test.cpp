#include "fusebook/prelude/philox.h"

#include <doctest/doctest.h>

#include <array>
#include <set>

using fuse::device::philox;
using fuse::device::u32;
using fuse::device::u64;

namespace {

using Words = std::array<u32, 4>;

Words bits(u64 key, u64 stream, u64 index) {
  const fuse::device::RandomBits made = philox(key, stream, index);
  return {made.words[0], made.words[1], made.words[2], made.words[3]};
}

}  // namespace

// The known answers of Random123 (kat_vectors, philox 4x32 10). There counters
// and keys are words, the lowest first.
TEST_CASE("the published answers") {
  CHECK(bits(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(bits(0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(bits(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every bit of key, stream and index matters") {
  std::set<Words> seen = {bits(1, 2, 3)};
  for (int bit = 0; bit < 64; ++bit) {
    const u64 flipped = u64(1) << bit;
    seen.insert(bits(1 ^ flipped, 2, 3));
    seen.insert(bits(1, 2 ^ flipped, 3));
    seen.insert(bits(1, 2, 3 ^ flipped));
  }
  CHECK(seen.size() == 1 + 3 * 64);
}
