#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "dtype.h"

namespace fuse {

/// Calls `use(T{})` with the C++ type of `dtype`, and returns what it returns.
template <class Use>
decltype(auto) with_type(DType dtype, Use&& use) {
  return dtype == DType::float32 ? use(float{}) : use(double{});
}

template <class T>
constexpr DType dtype_of =
    std::is_same_v<T, float> ? DType::float32 : DType::float64;

/// Element `index` of an array of `T` at any address, aligned or not.
template <class T>
T load_element(const void* data, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <class T>
void store_element(void* data, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * sizeof(T), &value, sizeof(T));
}

}  // namespace fuse
