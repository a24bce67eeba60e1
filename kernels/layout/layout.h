#pragma once

#include <cstddef>
#include <cstdint>

namespace fuse {

/// The layout of a tensor's elements: sizes, and distances between neighbours
/// in elements, for each of `rank` dimensions.
struct Layout {
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;
  std::size_t rank = 0;
};

}  // namespace fuse
