#pragma once

#include <cstring>
#include <span>
#include <vector>

namespace fuse {

/// Distinguishes the two zeros, and a NaN equals itself.
inline bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof(double)) == 0;
}

/// For types without padding.
template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}
template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bytes(std::span<const T>(a), std::span<const T>(b));
}

}  // namespace fuse
