#include "fusebook/tensor/tensor_layout.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "fusebook/layout/collapse_dims.h"
#include "fusebook/layout/strided_copy.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

// Copies line by line; with a source stride of 0, one element fills the line.
void copy_lines(const TensorImpl& target, const void* source,
                const Layout& source_layout) {
  if (target.numel == 0) return;
  const std::size_t size = size_of(target.dtype);
  const std::array layouts = {layout_of(target), source_layout};
  LineCutter cutter;
  cutter.cut(layouts, 0, target.numel);
  const auto bytes = std::int64_t(size);
  cutter.for_each([&](std::span<const i64> offsets) {
    copy_strided(static_cast<char*>(target.data) + offsets[0] * bytes,
                 cutter.strides()[0],
                 static_cast<const char*>(source) + offsets[1] * bytes,
                 cutter.strides()[1], cutter.length(), size);
  });
}

}  // namespace

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    // As in torch, so that an empty tensor has sensible strides. Shapes beyond all
    // memory are refused by checked_numel; here they wrap around.
    const auto size = std::uint64_t(std::max<std::int64_t>(shape[d], 1));
    stride = std::int64_t(std::uint64_t(stride) * size);
  }
  return strides;
}

std::int64_t checked_numel(const Shape& shape, DType dtype) {
  // Scales take less than a second byte.
  const std::int64_t most = in_blocks(dtype) ? 2 : std::int64_t(size_of(dtype));
  const auto limit = std::numeric_limits<std::int64_t>::max() / most;
  bool is_empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw Error("invalid shape " + to_string(shape) +
                  ": sizes must not be negative");
    }
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return 0;
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) {
    if (size > limit / numel) {
      throw Error("invalid shape " + to_string(shape) +
                  ": the size in bytes exceeds 64 bits");
    }
    numel *= size;
  }
  return numel;
}

void check_numbers(const char* who, DType dtype) {
  if (!in_blocks(dtype)) return;
  throw Error(std::string(who) + " does not take " + name_of(dtype) +
              ", whose elements share scales; convert with to(DType::float32)");
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const bool a_is_longer = a.size() >= b.size();
  Shape all = a_is_longer ? a : b;
  const Shape& other = a_is_longer ? b : a;
  const std::size_t fresh = all.size() - other.size();
  for (std::size_t d = 0; d < other.size(); ++d) {
    std::int64_t& size = all[fresh + d];
    if (other[d] == 1 || other[d] == size) continue;
    if (size != 1) return std::nullopt;
    size = other[d];
  }
  return all;
}

Layout layout_of(const TensorImpl& impl) {
  return {impl.shape.data(), impl.strides.data(), impl.shape.size()};
}

namespace {

bool is_row_major(const TensorImpl& impl) {
  if (impl.numel == 0) return true;
  std::int64_t stride = 1;
  for (std::size_t d = impl.shape.size(); d-- > 0;) {
    if (impl.shape[d] == 1) continue;
    if (impl.strides[d] != stride) return false;
    stride *= impl.shape[d];
  }
  return true;
}

}  // namespace

void set_strides(TensorImpl& impl, Shape strides) {
  impl.strides = std::move(strides);
  impl.contiguous = is_row_major(impl);
}

bool is_dense(const TensorImpl& impl) {
  if (is_contiguous(impl)) return true;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < impl.shape.size(); ++d) {
    if (impl.shape[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return impl.strides[a] < impl.strides[b];
  });
  std::int64_t stride = 1;
  for (const std::size_t d : order) {
    if (impl.strides[d] != stride) return false;
    stride *= impl.shape[d];
  }
  return true;
}

std::size_t extent_bytes(const TensorImpl& impl) {
  return bytes_of(impl.dtype, extent(impl.numel, layout_of(impl)));
}

Region region_of(const TensorImpl& impl) {
  if (in_blocks(impl.dtype)) {
    return make_region(impl.data, i64(bytes_of(impl.dtype, impl.numel)),
                       nullptr, 1);
  }
  const Layout layout = layout_of(impl);
  return make_region(impl.data, impl.numel, &layout, size_of(impl.dtype));
}

bool share_bytes(const TensorImpl& a, const TensorImpl& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.data);
  const auto second = reinterpret_cast<std::uintptr_t>(b.data);
  const std::size_t size_a = extent_bytes(a);
  const std::size_t size_b = extent_bytes(b);
  if (size_a == 0 || size_b == 0) return false;
  if (first >= second + size_b || second >= first + size_a) return false;
  return overlap(region_of(a), region_of(b));
}

void check_storable(const TensorImpl& impl, const char* what) {
  if (is_contiguous(impl) || !overlaps_itself(layout_of(impl))) return;
  throw Error(std::string(what) + ": several elements of the tensor of shape " +
              to_string(impl.shape) + " and strides " +
              to_string(impl.strides) +
              " share memory, as after expand; store into a clone of it");
}

bool has_repeats(const TensorImpl& impl) {
  if (is_contiguous(impl)) return false;
  for (std::size_t d = 0; d < impl.shape.size(); ++d) {
    if (impl.strides[d] == 0 && impl.shape[d] > 1) return true;
  }
  return false;
}

Tensor without_repeats(const Tensor& tensor) {
  Tensor distinct = tensor;
  for (std::size_t d = 0; d < tensor.shape().size(); ++d) {
    const bool repeated = tensor.strides()[d] == 0 && tensor.shape()[d] > 1;
    if (repeated) distinct = distinct.narrow(std::int64_t(d), 0, 1);
  }
  return distinct;
}

void copy_elements(const TensorImpl& target, const TensorImpl& source) {
  copy_lines(target, source.data, layout_of(source));
}

void copy_to_all(const TensorImpl& target, const void* element) {
  const Shape none(target.shape.size(), 0);
  copy_lines(target, element,
             {target.shape.data(), none.data(), target.shape.size()});
}

std::shared_ptr<TensorImpl> bare(const TensorImpl& tensor) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = tensor.storage;
  impl->data = tensor.data;
  impl->numel = tensor.numel;
  impl->dtype = tensor.dtype;
  impl->shape = tensor.shape;
  impl->strides = tensor.strides;
  impl->contiguous = tensor.contiguous;
  return impl;
}

}  // namespace fuse
