#pragma once

#include <cstddef>
#include <cstdint>

namespace fuse {

/// Element types of tensors. `float32` is IEEE binary32, `float64` binary64.
enum class DType : std::uint8_t { float32, float64 };

/// Size of one element in bytes.
constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::float32 ? 4 : 8;
}

/// The name as torch prints it: "float32" or "float64".
constexpr const char* name_of(DType dtype) {
  return dtype == DType::float32 ? "float32" : "float64";
}

}  // namespace fuse
