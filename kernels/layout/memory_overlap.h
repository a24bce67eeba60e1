#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/layout/layout.h"

namespace fuse {

/// The bytes of one tensor: runs of `run` bytes each, starting at `begin` and
/// then `stride` bytes apart in each of the dimensions, the largest stride
/// first.
struct Region {
  struct Dimension {
    std::int64_t size;
    std::int64_t stride;
  };

  std::uintptr_t begin = 0;
  /// one past the last byte; `begin` if there are no elements
  std::uintptr_t end = 0;
  std::int64_t run = 0;
  std::vector<Dimension> dimensions;
};

/// The bytes of `numel` elements of `size` bytes; contiguous without a layout
/// or with one without strides.
Region make_region(const void* data, std::int64_t numel, const Layout* layout,
                   std::size_t size);

/// The extent of a tensor of `numel` elements, in elements from its first.
std::int64_t extent(std::int64_t numel, const Layout& layout);

/// True if some byte belongs to both. Exact for views of one tensor and almost
/// everything else; if the search takes too long, which requires strides with
/// hardly any common structure, the answer is true.
bool overlap(const Region& a, const Region& b);

/// True if some byte belongs to two elements, as in expanded tensors. Exact for
/// any view of a tensor, and true when in doubt.
bool overlaps_itself(const Layout& layout);

/// True if two layouts place every element at the same address. Null means
/// row-major order; both have the same number of elements.
bool same_places(const Layout* a, const Layout* b);

}  // namespace fuse
