#include "layouts.h"

#include <algorithm>

#include "fusebook/device/allocator.h"

namespace fuse::python {

void Layouts::clear() {
  all_.clear();
  numbers_.clear();
}

void Layouts::add(const TensorImpl& tensor) {
  const std::size_t first = numbers_.size();
  const Device& device = tensor.storage->device;
  const int code = tensor.dtype == DType::bfloat16 ? kDLBfloat
                   : tensor.dtype == DType::int16  ? kDLInt
                                                   : kDLFloat;
  numbers_.resize(first + 2 * tensor.shape.size());
  std::ranges::copy(tensor.shape, numbers_.begin() + std::ptrdiff_t(first));
  all_.push_back({.data = nullptr,
                  .first = first,
                  .ndim = std::int32_t(tensor.shape.size()),
                  .dtype = {std::uint8_t(code),
                            std::uint8_t(8 * size_of(tensor.dtype)), 1},
                  .device = {device.is_cpu() ? kDLCPU : kDLCUDA, device.index},
                  .contiguous = false,
                  .is_empty = tensor.numel == 0});
  update(all_.size() - 1, tensor);
}

void Layouts::update(std::size_t i, const TensorImpl& tensor) {
  Layout& own = all_[i];
  own.data = tensor.data;
  own.contiguous = tensor.contiguous;
  std::ranges::copy(tensor.strides,
                    numbers_.begin() + std::ptrdiff_t(own.first) + own.ndim);
}

bool Layouts::same_place(std::size_t i, const DLTensor& told) const {
  return static_cast<char*>(told.data) + told.byte_offset == all_[i].data;
}

bool Layouts::same_shape(std::size_t i, const DLTensor& told) const {
  const Layout& own = all_[i];
  const std::int64_t* const sizes = numbers_.data() + own.first;
  return std::equal(told.shape, told.shape + told.ndim, sizes,
                    sizes + own.ndim);
}

bool Layouts::same_strides(std::size_t i, const DLTensor& told) const {
  const Layout& own = all_[i];
  if (told.strides == nullptr) return own.contiguous;
  if (own.is_empty) return true;
  const std::int64_t* const sizes = numbers_.data() + own.first;
  const std::int64_t* const strides = sizes + own.ndim;
  for (std::int32_t d = 0; d < own.ndim; ++d) {
    if (sizes[d] != 1 && told.strides[d] != strides[d]) return false;
  }
  return true;
}

bool Layouts::same_kind(std::size_t i, const DLTensor& told) const {
  const Layout& own = all_[i];
  const bool here = own.device.device_type == kDLCPU
                        ? told.device.device_type == kDLCPU ||
                              told.device.device_type == kDLCUDAHost
                        : (told.device.device_type == kDLCUDA ||
                           told.device.device_type == kDLCUDAManaged) &&
                              told.device.device_id == own.device.device_id;
  return here && told.dtype.lanes == 1 && told.dtype.bits == own.dtype.bits &&
         told.dtype.code == own.dtype.code;
}

}  // namespace fuse::python
