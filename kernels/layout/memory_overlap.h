#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/layout/layout.h"

namespace fuse {

/// The bytes of one tensor: runs of `run` bytes each, first at `begin` and then
/// `stride` bytes apart in each of the dimensions, the largest stride first.
struct Region {
  struct Dimension {
    std::int64_t size;
    std::int64_t stride;
  };

  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  ///< behind the last byte; `begin` for no elements
  std::int64_t run = 0;
  std::vector<Dimension> dimensions;
};

/// The bytes of `numel` elements of `size` bytes; side by side without a layout
/// or with one without strides.
Region make_region(const void* data, std::int64_t numel, const Layout* layout,
                   std::size_t size);

/// Where a tensor of `numel` elements ends, counted in elements from its first.
std::int64_t extent(std::int64_t numel, const Layout& layout);

/// True when some byte belongs to both. Exact for views of one tensor and
/// nearly everything else; where the search gets too long, which takes strides
/// that have hardly anything to do with each other, the answer is true.
bool overlap(const Region& a, const Region& b);

/// True when some byte belongs to two elements, as in expanded tensors. Exact
/// for whatever views can be made of a tensor, and true when in doubt.
bool overlaps_itself(const Layout& layout);

/// True when two layouts give every element the same place. Null stands for
/// row-major order; both have as many elements.
bool same_places(const Layout* a, const Layout* b);

}  // namespace fuse
