#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "fusebook/ops/dtype.h"
#include "fusebook/ops/float16.h"
#include "fusebook/support/error.h"

namespace fuse {

/// Calls `use(T{})` with the C++ type of `dtype`, and returns the result. Throws
/// Error for blocks, whose elements have none.
template <class Use>
decltype(auto) with_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::float32:
      return use(float{});
    case DType::float64:
      return use(double{});
    case DType::float16:
      return use(Float16{});
    case DType::int16:
      return use(Int16{});
    case DType::bfloat16:
      return use(BFloat16{});
    case DType::position:
      throw Error("positions of elements are in no memory, and cannot be used");
    default:
      throw Error(std::string("elements in blocks of 8 bits (") +
                  name_of(dtype) +
                  ") cannot be used one by one; convert with "
                  "to(DType::float32)");
  }
}

/// The same for code that computes in the type itself. Throws Error naming
/// `who` for types that are storage only.
template <class Use>
decltype(auto) with_computing_type(const char* who, DType dtype, Use&& use) {
  if (is_reduced(dtype) || in_blocks(dtype)) {
    throw Error(std::string(who) + " takes float32 and float64, not " +
                name_of(dtype) + "; convert with to(DType::float32)");
  }
  return dtype == DType::float32 ? use(float{}) : use(double{});
}

template <class T>
constexpr DType dtype_of = DType::float64;
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<Float16> = DType::float16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<Int16> = DType::int16;

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
