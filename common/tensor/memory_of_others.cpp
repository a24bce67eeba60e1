// Tensors over memory that others own.
#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "fusebook/device/allocator.h"
#include "fusebook/device/backend.h"
#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

[[noreturn]] void refuse(const Shape& shape, const std::string& what) {
  throw Error(fmt::format("from_memory: {} (the tensor has shape {})", what,
                          to_string(shape)));
}

// Bytes from the first element to one past the last.
std::int64_t checked_extent(const Shape& shape, const Shape& strides,
                            std::int64_t numel, DType dtype) {
  if (strides.size() != shape.size()) {
    refuse(shape, fmt::format("strides {} do not name each dimension once",
                              to_string(strides)));
  }
  for (const std::int64_t stride : strides) {
    if (stride < 0) {
      refuse(shape, fmt::format("strides {} must not be negative; copy the "
                                "elements to memory in another order",
                                to_string(strides)));
    }
  }
  if (numel == 0) return 0;
  std::int64_t last = 0;
  bool fits = true;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t span = 0;
    fits = fits && !__builtin_mul_overflow(shape[d] - 1, strides[d], &span) &&
           !__builtin_add_overflow(last, span, &last);
  }
  const auto size = std::int64_t(size_of(dtype));
  if (!fits || last > std::numeric_limits<std::int64_t>::max() / size - 1) {
    refuse(shape,
           fmt::format("strides {} reach beyond 64 bits", to_string(strides)));
  }
  return (last + 1) * size;
}

void check_address(const void* data, const Shape& shape, std::int64_t bytes,
                   DType dtype, const Device& device) {
  DeviceBackend& backend = backend_of(device);
  backend.require(device.index);
  if (bytes == 0) return;
  if (data == nullptr) refuse(shape, "the address is null");
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address >
      std::numeric_limits<std::uintptr_t>::max() - std::uintptr_t(bytes)) {
    refuse(shape, "the memory would end beyond the last address");
  }
  const std::size_t alignment = backend.alignment(size_of(dtype));
  if (address % alignment != 0) {
    refuse(shape,
           fmt::format("the address {:#x} is not aligned to {} bytes, as "
                       "{} requires",
                       address, alignment, to_string(device)));
  }
}

}  // namespace

Tensor Tensor::from_memory(void* data, const Shape& shape, const Shape& strides,
                           DType dtype, const Device& device,
                           std::shared_ptr<void> keep_alive) {
  check_numbers("Tensor::from_memory", dtype);
  const std::int64_t numel = checked_numel(shape, dtype);
  const Shape steps = strides.empty() ? row_major_strides(shape) : strides;
  const std::int64_t bytes = checked_extent(shape, steps, numel, dtype);
  check_address(data, shape, bytes, dtype, device);
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::make_shared<Storage>(data, std::size_t(bytes), false);
  impl->storage->device = device;
  impl->storage->block = std::move(keep_alive);
  impl->data = data;
  impl->numel = numel;
  impl->dtype = dtype;
  impl->shape = shape;
  set_strides(*impl, steps);
  return Tensor(std::move(impl));
}

}  // namespace fuse
