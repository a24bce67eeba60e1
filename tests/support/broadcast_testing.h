// Broadcasting by plain index arithmetic.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace broadcast_testing {

using fuse::Shape;
using Values = std::vector<std::vector<double>>;

inline std::int64_t numel_of(const Shape& shape) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return numel;
}

/// The size of a dimension counted from the last one; 1 where there is none.
inline std::int64_t size_from_end(const Shape& shape, std::size_t back) {
  return back < shape.size() ? shape[shape.size() - 1 - back] : 1;
}

/// The shape of shapes that broadcast.
inline Shape broadcast_by_hand(const Shape& a, const Shape& b) {
  Shape all(std::max(a.size(), b.size()));
  for (std::size_t back = 0; back < all.size(); ++back) {
    const std::int64_t x = size_from_end(a, back);
    all[all.size() - 1 - back] = x == 1 ? size_from_end(b, back) : x;
  }
  return all;
}

/// Which element of a tensor of shape `from` stands at element `i` of one of
/// shape `to`; both are counted in row-major order.
inline std::size_t place_in(const Shape& from, const Shape& to,
                            std::int64_t i) {
  std::int64_t place = 0;
  std::int64_t step = 1;
  for (std::size_t back = 0; back < to.size(); ++back) {
    const std::int64_t size = size_from_end(to, back);
    const std::int64_t own = size_from_end(from, back);
    place += own == 1 ? 0 : i % size * step;
    step *= own;
    i /= size;
  }
  return std::size_t(place);
}

}  // namespace broadcast_testing
