#include "fusebook/tensor/host_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fusebook/ops/blocks_of.h"
#include "fusebook/ops/element.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// Through double, which holds all dtypes exactly: one rounding.
template <class To, class From>
To convert_element(From value) {
  return static_cast<To>(double(value));
}

/// Copies between dtypes; both tensors are contiguous and do not overlap.
void convert(const TensorImpl& target, const TensorImpl& source) {
  with_type(target.dtype, [&](auto to) {
    with_type(source.dtype, [&](auto from) {
      for (std::size_t i = 0; i < std::size_t(target.numel); ++i) {
        const auto value = load_element<decltype(from)>(source.data, i);
        store_element(target.data, i, convert_element<decltype(to)>(value));
      }
    });
  });
}

void decode(const TensorImpl& from, float* to) {
  decode_blocks(from.dtype, from.data, 0, from.numel, to);
}

void encode(const TensorImpl& to, const float* from) {
  encode_blocks(to.dtype, from, to.numel, to.data, 0);
}

void copy_apart(const TensorImpl& target, const TensorImpl& source);

// One of them is in blocks: floats in row-major order come between.
void copy_blocks(const TensorImpl& target, const TensorImpl& source) {
  const Tensor floats = empty(source.shape, DType::float32, cpu_device);
  auto* const values = static_cast<float*>(floats.raw_data());
  if (in_blocks(source.dtype)) {
    decode(source, values);
  } else {
    copy_apart(*floats.impl(), source);
  }
  if (in_blocks(target.dtype)) {
    encode(target, values);
  } else {
    copy_apart(target, *floats.impl());
  }
}

// Copies from memory that does not overlap the target.
void copy_apart(const TensorImpl& target, const TensorImpl& source) {
  if (in_blocks(source.dtype) || in_blocks(target.dtype)) {
    copy_blocks(target, source);
  } else if (source.dtype == target.dtype) {
    copy_elements(target, source);
  } else if (!is_contiguous(source)) {
    const Tensor dense = empty(source.shape, source.dtype, cpu_device);
    copy_elements(*dense.impl(), source);
    copy_apart(target, *dense.impl());
  } else if (is_contiguous(target)) {
    convert(target, source);
  } else {
    const Tensor converted = empty(target.shape, target.dtype, cpu_device);
    convert(*converted.impl(), source);
    copy_elements(target, *converted.impl());
  }
}

}  // namespace

void copy_on_host(const TensorImpl& target, const TensorImpl& source) {
  const bool plain = is_contiguous(target) && is_contiguous(source);
  if (plain && source.dtype == target.dtype) {
    std::memmove(target.data, source.data,
                 bytes_of(target.dtype, target.numel));
  } else if (share_bytes(target, source)) {
    const Tensor dense =
        empty(source.shape, value_type(source.dtype), cpu_device);
    copy_apart(*dense.impl(), source);
    copy_apart(target, *dense.impl());
  } else {
    copy_apart(target, source);
  }
}

void fill_on_host(const TensorImpl& target, double value) {
  if (in_blocks(target.dtype)) {
    const Tensor floats = full(target.shape, value, DType::float32, cpu_device);
    return encode(target, static_cast<const float*>(floats.raw_data()));
  }
  if (!is_contiguous(target)) {
    copy_to_all(target, tensor(value, target.dtype).raw_data());
    return;
  }
  with_type(target.dtype, [&](auto type) {
    const auto element = static_cast<decltype(type)>(value);
    for (std::size_t i = 0; i < std::size_t(target.numel); ++i) {
      store_element(target.data, i, element);
    }
  });
}

}  // namespace fuse
