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
DType type_with(DType codes, std::int64_t numel, std::int64_t bytes,
                const char* what) {
  for (std::int64_t size = largest_block; is_block_size(size); size /= 2) {
    if (bytes_in_blocks(numel, size) == bytes) {
      return with_block_size(codes, size);
    }
  }
  throw Error(
      fmt::format("{} has {} bytes, which are not the scales and codes "
                  "of {} elements",
                  what, bytes, numel));
}

}  // namespace

bool is_coded(nb::handle object) {
  Description description;
  return description.ask(object.ptr(), false) &&
         has_codes(description.tensor());
}

Tensor state_from_codes(nb::handle object, const char* what,
                        const Shape& shape) {
  Description description;
  description.ask(object.ptr(), false);
  const DLTensor& told = description.tensor();
  const bool dense =
      told.ndim == 1 && told.device.device_type == kDLCPU &&
      (told.strides == nullptr || told.strides[0] == 1 || told.shape[0] <= 1);
  if (!dense) {
    throw Error(
        fmt::format("{} must be bytes in one dimension, without gaps, "
                    "in host memory",
                    what));
  }
  const DType codes =
      told.dtype.code == kDLInt ? DType::block8 : DType::ublock8;
  const DType dtype = type_with(codes, numel_of(shape), told.shape[0], what);
  const Tensor state = empty(shape, dtype, cpu_device);
  if (told.shape[0] == 0) return state;
  std::memcpy(state.raw_data(),
              static_cast<const char*>(told.data) + told.byte_offset,
              std::size_t(told.shape[0]));
  return state;
}

}  // namespace fuse::python
