#include "fusebook/ops/dtype.h"

#include <fmt/core.h>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* names_in_blocks[][2] = {
    {"block8_32", "ublock8_32"},     {"block8_64", "ublock8_64"},
    {"block8_128", "ublock8_128"},   {"block8", "ublock8"},
    {"block8_512", "ublock8_512"},   {"block8_1024", "ublock8_1024"},
    {"block8_2048", "ublock8_2048"},
};

}  // namespace

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::float16:
      return "float16";
    case DType::int16:
      return "int16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::position:
      return "position";
    default:
      return names_in_blocks[(int(dtype) >> 4) - 5][int(dtype) & 1];
  }
}

DType with_block_size(DType dtype, std::int64_t size) {
  if (!in_blocks(dtype)) {
    throw Error(
        fmt::format("with_block_size takes block8 or ublock8, not {}, whose "
                    "elements are not "
                    "in blocks",
                    name_of(dtype)));
  }
  if (!is_block_size(size)) {
    throw Error(fmt::format(
        "a block must have a power of two of elements, from 32 to 2048, but is "
        "to have {}",
        size));
  }
  int logarithm = 0;
  while (std::int64_t(1) << logarithm < size) ++logarithm;
  return DType(logarithm << 4 | (int(dtype) & 1));
}

}  // namespace fuse
