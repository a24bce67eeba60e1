#pragma once

#include <cstddef>
#include <cstdint>

#include "fusebook/prelude/blocks.h"
#include "fusebook/support/version.h"

namespace fuse {

/// Element types of tensors. `float32` is IEEE binary32, `float64` binary64,
/// `float16` binary16, and `bfloat16` the upper half of a binary32. `int16` holds
/// whole numbers, such as lower halves of a binary32: what is between two is cut
/// towards zero, what is beyond the last becomes that one, and a NaN zero. `block8`
/// and `ublock8` hold a float32 in 8 bits, for the states of optimizers: codes, with
/// a scale for every 256 elements (kernels/prelude/blocks.h). How many share one is
/// part of the type: with_block_size makes one for another number. `position` is in
/// no memory: elements are where they stand, in row-major order, in their tensor.
enum class DType : std::uint8_t {
  float32,   ///< 24 bits of precision
  float64,   ///< 53 bits
  float16,   ///< 11 bits, up to 65504; storage only
  bfloat16,  ///< 8 bits, the range of float32; storage only
  int16,     ///< whole numbers from -32768 to 32767; storage only
  position,  ///< where an element stands; only to draw random bits for it
  // The upper half is the logarithm of the size of a block.
  block8 = 0x80,   ///< codes of 8 bits with a sign; storage only
  ublock8 = 0x81,  ///< codes of 8 bits for what is never negative; storage only
};

/// The types whose elements are numbers of their own: the first ones.
inline constexpr int dtype_count = 5;

// Allows writing `to(p, float32)`.
inline constexpr DType float32 = DType::float32;    ///< DType::float32
inline constexpr DType float64 = DType::float64;    ///< DType::float64
inline constexpr DType float16 = DType::float16;    ///< DType::float16
inline constexpr DType bfloat16 = DType::bfloat16;  ///< DType::bfloat16
inline constexpr DType int16 = DType::int16;        ///< DType::int16
inline constexpr DType block8 = DType::block8;      ///< DType::block8
inline constexpr DType ublock8 = DType::ublock8;    ///< DType::ublock8

/// True for elements of 8 bits, which lie in blocks with scales of their own.
constexpr bool in_blocks(DType dtype) { return int(dtype) >= 0x10; }

/// How many neighbours have a scale of their own: from 32 to 2048, and 256 of
/// `block8` and `ublock8`. One for types that are not in blocks.
constexpr std::int64_t block_size_of(DType dtype) {
  return std::int64_t(1) << (int(dtype) >> 4);
}

/// The largest blocks there are. What computes elements holds whole ones.
inline constexpr std::int64_t largest_block = 2048;

/// True for powers of two from 32 to 2048.
constexpr bool is_block_size(std::int64_t size) {
  return size >= 32 && size <= largest_block && (size & (size - 1)) == 0;
}

/// True for types in blocks whose codes have a sign: `block8`, in blocks of any size.
constexpr bool has_sign(DType dtype) {
  return in_blocks(dtype) && (int(dtype) & 1) == 0;
}

/// The type with the same codes in blocks of this size, such as
/// `with_block_size(block8, 128)`: one of its own, unless the size is 256. Throws
/// Error if `dtype` is not in blocks, or unless `is_block_size(size)`.
DType with_block_size(DType dtype, std::int64_t size);

/// Size of one element in bytes; the scales of blocks come on top. Positions have
/// none, but addresses count them in steps of one.
constexpr std::size_t size_of(DType dtype) {
  if (in_blocks(dtype) || dtype == DType::position) return 1;
  if (dtype == DType::float64) return 8;
  return dtype == DType::float32 ? 4 : 2;
}

/// The bytes of a dense tensor of so many elements.
constexpr std::size_t bytes_of(DType dtype, std::int64_t numel) {
  if (dtype == DType::position) return 0;
  return in_blocks(dtype)
             ? std::size_t(bytes_in_blocks(numel, block_size_of(dtype)))
             : std::size_t(numel) * size_of(dtype);
}

/// The name as torch prints it: "float32", "float64", "float16", "bfloat16",
/// "int16"; those of blocks are ours: "block8", or "block8_128" in blocks of 128.
const char* name_of(DType dtype);

/// True for the 16-bit types, which are storage only. Operations on them
/// compute in float32 and round each result.
constexpr bool is_reduced(DType dtype) { return size_of(dtype) == 2; }

/// True for floats of 16 bits.
constexpr bool is_half(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

/// The type that elements have once they are read: that of their list, or what
/// blocks decode to, and what is drawn for positions.
constexpr DType value_type(DType dtype) {
  const bool other = in_blocks(dtype) || dtype == DType::position;
  return other ? DType::float32 : dtype;
}

/// The type that operations on elements of `dtype` compute in.
constexpr DType compute_type(DType dtype) {
  return is_reduced(dtype) ? DType::float32 : value_type(dtype);
}

/// The result type for elements of two types, like torch.promote_types of floats:
/// the smallest that holds the values of both.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  const bool wide = a == DType::float64 || b == DType::float64;
  return wide ? DType::float64 : DType::float32;
}

}  // namespace fuse
