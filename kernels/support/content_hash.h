#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuse {

/// A 64-bit hash of `bytes`, for names and checksums: any change within eight
/// neighbouring bytes changes it. Not cryptographic.
std::uint64_t content_hash(std::string_view bytes, std::uint64_t seed = 0);

/// The same in pieces, however the bytes are cut. A copy of it goes on where they
/// end, also in another process.
class ContentHash {
 public:
  explicit ContentHash(std::uint64_t seed = 0);

  /// Appends bytes.
  void add(std::string_view bytes);
  /// content_hash(all of them, seed).
  std::uint64_t value() const;

 private:
  std::array<std::uint64_t, 8> lanes_{};
  std::array<char, 64> tail_{};  // too short to be mixed
  std::uint64_t size_ = 0;
  std::uint64_t seed_;
};

/// `value` as 16 hexadecimal digits.
std::string hex_digits(std::uint64_t value);

}  // namespace fuse
