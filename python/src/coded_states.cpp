#include "coded_states.h"

#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "arrays.h"
#include "fusebook/device/allocator.h"
#include "fusebook/ops/dtype.h"
#include "fusebook/support/error.h"

namespace nb = nanobind;

namespace fuse::python {
namespace {

std::int64_t numel_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t(1),
                         std::multiplies<>());
}

bool has_codes(const DLTensor& told) {
  return told.dtype.lanes == 1 && told.dtype.bits == 8 &&
         (told.dtype.code == kDLInt || told.dtype.code == kDLUInt);
}

// The type whose tensors of so many elements have so many bytes. Where there are
// two, a block is the whole tensor, and their bytes are the same.
DType type_with(DType codes, std::int64_t numel, std::int64_t block_size,
                std::int64_t bytes, const char* what) {
  if (bytes_in_blocks(numel, block_size) == bytes) {
    return with_block_size(codes, block_size);
  }
  for (std::int64_t size = largest_block; is_block_size(size); size /= 2) {
    if (bytes_in_blocks(numel, size) == bytes) {
      return with_block_size(codes, size);
    }
  }
  throw Error(fmt::format(
      "{} has {} bytes, but the scales and codes of {} elements, in "
      "blocks of {}, take {}",
      what, bytes, numel, block_size, bytes_in_blocks(numel, block_size)));
}

}  // namespace

bool is_coded(nb::handle object) {
  try {
    Description description;
    return description.ask(object.ptr(), false) &&
           has_codes(description.tensor());
  } catch (const Error&) {
    return false;  // whoever takes it as something else says what is wrong
  }
}

Tensor state_from_codes(nb::handle object, const char* what, const Shape& shape,
                        std::int64_t block_size) {
  Description description;
  description.ask(object.ptr(), false);
  const DLTensor& told = description.tensor();
  const bool dense =
      told.ndim == 1 && told.device.device_type == kDLCPU &&
      (told.strides == nullptr || told.strides[0] == 1 || told.shape[0] <= 1);
  if (!dense) {
    throw Error(
        fmt::format("{} has codes of 8 bits, so it must be a contiguous "
                    "one-dimensional array in host memory",
                    what));
  }
  const DType codes =
      told.dtype.code == kDLInt ? DType::block8 : DType::ublock8;
  const DType dtype =
      type_with(codes, numel_of(shape), block_size, told.shape[0], what);
  const Tensor state = empty(shape, dtype, cpu_device);
  if (told.shape[0] == 0) return state;
  std::memcpy(state.raw_data(),
              static_cast<const char*>(told.data) + told.byte_offset,
              std::size_t(told.shape[0]));
  return state;
}

}  // namespace fuse::python
