#pragma once

#include <cstddef>

#include "fusebook/prelude/target.h"

namespace fuse {

/// Copies `n` elements of `size` bytes, whose neighbours are `to_stride` and
/// `from_stride` elements apart, at any address. Source and target must be
/// identical or disjoint.
void copy_strided(void* to, i64 to_stride, const void* from, i64 from_stride,
                  i64 n, std::size_t size);

}  // namespace fuse
