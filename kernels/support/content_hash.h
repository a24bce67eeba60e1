#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fuse {

/// A 64-bit hash of `bytes`, for names and checksums: any change within eight
/// neighbouring bytes changes it. Not cryptographic.
std::uint64_t content_hash(std::string_view bytes, std::uint64_t seed = 0);

/// `value` as 16 hexadecimal digits.
std::string hex_digits(std::uint64_t value);

}  // namespace fuse
