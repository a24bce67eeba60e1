#pragma once

#include <cstddef>
#include <cstdint>

namespace fuse {

/// How the elements of a tensor lie: sizes, and distances in elements between
/// neighbours, of each of `rank` dimensions.
struct Layout {
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;
  std::size_t rank = 0;
};

}  // namespace fuse
