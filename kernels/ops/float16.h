#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace fuse {

/// A number of `DType::float16` on the host, two bytes as in memory. It only
/// converts, explicitly: compute in float or double. Conversions round once,
/// ties to even; values that are too large become infinite.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value);
  explicit Float16(double value);
  explicit Float16(std::integral auto value) : Float16(double(value)) {}
  explicit operator float() const;
  explicit operator double() const { return double(float(*this)); }
};

/// The same for `DType::bfloat16`.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value);
  explicit BFloat16(double value);
  explicit BFloat16(std::integral auto value) : BFloat16(double(value)) {}
  explicit operator float() const;
  explicit operator double() const { return double(float(*this)); }
};

/// A whole number of `DType::int16`, which says what conversions make of others.
struct Int16 {
  std::int16_t number = 0;

  Int16() = default;
  explicit Int16(float value);
  explicit Int16(double value);
  explicit Int16(std::integral auto value) : Int16(double(value)) {}
  explicit operator float() const { return number; }
  explicit operator double() const { return number; }
};

static_assert(sizeof(Float16) == 2 && std::is_trivially_copyable_v<Float16>);
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);
static_assert(sizeof(Int16) == 2 && std::is_trivially_copyable_v<Int16>);

}  // namespace fuse
