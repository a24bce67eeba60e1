#include "fusebook/tensor/random.h"

#include <fmt/core.h>

#include <cmath>
#include <type_traits>

#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

/// The upper bits of a draw as a fraction in [0, 1): as many as `T` holds.
template <class T>
auto fraction(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, double>) {
    return double(bits >> 11) * 0x1p-53;
  } else if constexpr (std::is_same_v<T, float>) {
    return float(bits >> 40) * 0x1p-24F;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return float(bits >> 53) * 0x1p-11F;
  } else {
    return float(bits >> 56) * 0x1p-8F;
  }
}

template <class T>
void draw(T* data, std::int64_t count, double low, double high,
          Generator& generator) {
  using Compute = decltype(fraction<T>(0));
  const auto start = static_cast<Compute>(low);
  const auto width = static_cast<Compute>(high - low);
  for (std::int64_t i = 0; i < count; ++i) {
    const Compute value = start + width * fraction<T>(generator.bits());
    store_element(data, std::size_t(i), static_cast<T>(value));
  }
}

}  // namespace

void uniform_(const Tensor& tensor, double low, double high,
              Generator& generator) {
  check_defined(tensor);
  if (!(low <= high) || !std::isfinite(high - low)) {
    throw Error(fmt::format("uniform_: the range from {} to {} is not finite",
                            low, high));
  }
  if (!tensor.is_contiguous() || !tensor.device().is_cpu()) {
    const Tensor drawn = empty(tensor.shape(), tensor.dtype(), cpu_device);
    uniform_(drawn, low, high, generator);
    Tensor(tensor).copy_(drawn);
    return;
  }
  with_type(tensor.dtype(), [&](auto type) {
    Tensor target = tensor;
    draw(target.data<decltype(type)>(), tensor.numel(), low, high, generator);
  });
}

Tensor rand(const Shape& shape, Generator& generator, DType dtype) {
  Tensor result = empty(shape, dtype);
  uniform_(result, 0.0, 1.0, generator);
  return result;
}

}  // namespace fuse
