#include "fusebook/layout/memory_overlap.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace fuse {
namespace {

using Dimension = Region::Dimension;
using Dimensions = std::span<const Dimension>;

void sort_by_stride(std::vector<Dimension>& dimensions) {
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) {
              return a.stride > b.stride;
            });
}

// Distance from the first byte of the first run to the first byte of the last.
std::int64_t reach(Dimensions dimensions) {
  std::int64_t sum = 0;
  for (const Dimension& d : dimensions) sum += (d.size - 1) * d.stride;
  return sum;
}

// The rest of a region within one step of its outer dimensions: runs starting
// at `begin`, relative to an origin common to both sides.
struct Rest {
  std::int64_t begin;
  std::int64_t run;
  Dimensions dimensions;

  std::int64_t end() const { return begin + reach(dimensions) + run; }
  const Dimension& outer() const { return dimensions.front(); }
  Rest inner(std::int64_t step) const {
    return {begin + step * outer().stride, run, dimensions.subspan(1)};
  }
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

class Search {
 public:
  bool overlap(const Rest& a, const Rest& b) {
    if (a.end() <= b.begin || b.end() <= a.begin) return false;
    if (a.dimensions.empty() && b.dimensions.empty()) return true;
    if (--budget_ < 0) return true;
    const std::int64_t wide_a = a.dimensions.empty() ? 0 : a.outer().stride;
    const std::int64_t wide_b = b.dimensions.empty() ? 0 : b.outer().stride;
    if (wide_a == wide_b) return same_stride(a, b);
    return wide_a > wide_b ? other_stride(a, b) : other_stride(b, a);
  }

 private:
  // Only the difference of the two outer indices matters: for each valid
  // difference, some pair of indices has it.
  bool same_stride(const Rest& a, const Rest& b) {
    const std::int64_t stride = a.outer().stride;
    const Rest in_a = a.inner(0);
    const Rest in_b = b.inner(0);
    // begin_b + k stride < end_a, and begin_a < end_b + k stride.
    const std::int64_t first = std::max(
        floor_div(in_a.begin - in_b.end(), stride) + 1, -(a.outer().size - 1));
    const std::int64_t last = std::min(
        floor_div(in_a.end() - 1 - in_b.begin, stride), b.outer().size - 1);
    for (std::int64_t k = first; k <= last; ++k) {
      const Rest moved = {in_b.begin + k * stride, in_b.run, in_b.dimensions};
      if (overlap(in_a, moved)) return true;
    }
    return false;
  }

  // `wide` has the larger outer stride. Either it is taken apart, or the other
  // one is cut into pieces of the same stride, whichever is less work.
  bool other_stride(const Rest& wide, const Rest& narrow) {
    const std::int64_t stride = wide.outer().stride;
    if (!narrow.dimensions.empty() && stride % narrow.outer().stride == 0) {
      const std::int64_t cuts = stride / narrow.outer().stride;
      if (cuts < wide.outer().size) return cut(wide, narrow, cuts);
    }
    const Rest in = wide.inner(0);
    const std::int64_t first = std::max<std::int64_t>(
        floor_div(narrow.begin - in.end(), stride) + 1, 0);
    const std::int64_t last = std::min(
        floor_div(narrow.end() - 1 - in.begin, stride), wide.outer().size - 1);
    for (std::int64_t k = first; k <= last; ++k) {
      if (overlap(wide.inner(k), narrow)) return true;
    }
    return false;
  }

  bool cut(const Rest& wide, const Rest& narrow, std::int64_t cuts) {
    const Dimension outer = narrow.outer();
    std::vector<Dimension> dimensions(narrow.dimensions.begin(),
                                      narrow.dimensions.end());
    dimensions.front().stride *= cuts;
    for (std::int64_t k = 0; k < std::min(cuts, outer.size); ++k) {
      dimensions.front().size = (outer.size - k + cuts - 1) / cuts;
      const Rest part = {narrow.begin + k * outer.stride, narrow.run,
                         dimensions};
      if (overlap(wide, part)) return true;
    }
    return false;
  }

  int budget_ = 1 << 14;
};

// All runs of both start at multiples of a common divisor from their first: if
// they are disjoint modulo that, they are disjoint.
bool apart_by_remainder(const Rest& a, const Rest& b) {
  std::int64_t step = 0;
  for (const Dimension& d : a.dimensions) step = std::gcd(step, d.stride);
  for (const Dimension& d : b.dimensions) step = std::gcd(step, d.stride);
  if (step == 0) return false;
  std::int64_t apart = (b.begin - a.begin) % step;
  if (apart < 0) apart += step;
  return apart >= a.run && apart + b.run <= step;
}

}  // namespace

Region make_region(const void* data, std::int64_t numel, const Layout* layout,
                   std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const auto element = std::int64_t(size);
  if (numel == 0) return {begin, begin, 0, {}};
  if (layout == nullptr || layout->strides == nullptr) {
    return {
        begin, begin + std::uintptr_t(numel * element), numel * element, {}};
  }
  Region region = {begin, begin, element, {}};
  for (std::size_t d = 0; d < layout->rank; ++d) {
    const std::int64_t stride = layout->strides[d] * element;
    if (layout->sizes[d] == 1 || stride == 0) continue;
    region.dimensions.push_back({layout->sizes[d], stride});
  }
  auto& dimensions = region.dimensions;
  sort_by_stride(dimensions);
  while (!dimensions.empty() && dimensions.back().stride == region.run) {
    region.run *= dimensions.back().size;
    dimensions.pop_back();
  }
  region.end += std::uintptr_t(reach(dimensions) + region.run);
  return region;
}

std::int64_t extent(std::int64_t numel, const Layout& layout) {
  if (numel == 0 || layout.strides == nullptr) return numel;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < layout.rank; ++d) {
    last += (layout.sizes[d] - 1) * layout.strides[d];
  }
  return last + 1;
}

bool overlap(const Region& a, const Region& b) {
  if (a.begin == a.end || b.begin == b.end) return false;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  const Rest first = {0, a.run, a.dimensions};
  const Rest second = {std::int64_t(b.begin - a.begin), b.run, b.dimensions};
  return !apart_by_remainder(first, second) && Search().overlap(first, second);
}

bool overlaps_itself(const Layout& layout) {
  if (layout.strides == nullptr) return false;
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < layout.rank; ++d) {
    if (layout.sizes[d] == 0) return false;
    if (layout.sizes[d] == 1) continue;
    dimensions.push_back({layout.sizes[d], layout.strides[d]});
  }
  sort_by_stride(dimensions);
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const auto inner = Dimensions(dimensions).subspan(d + 1);
    if (dimensions[d].stride <= reach(inner)) return true;
  }
  return false;
}

bool same_places(const Layout* a, const Layout* b) {
  const bool plain_a = a == nullptr || a->strides == nullptr;
  const bool plain_b = b == nullptr || b->strides == nullptr;
  if (plain_a && plain_b) return true;
  const Layout& shape = plain_a ? *b : *a;
  if (!plain_a && !plain_b &&
      !std::equal(a->sizes, a->sizes + a->rank, b->sizes, b->sizes + b->rank)) {
    return false;
  }
  std::int64_t row_major = 1;
  for (std::size_t d = shape.rank; d-- > 0;) {
    const std::int64_t size = shape.sizes[d];
    if (size != 1 && (plain_a ? row_major : a->strides[d]) !=
                         (plain_b ? row_major : b->strides[d])) {
      return false;
    }
    row_major *= size;
  }
  return true;
}

}  // namespace fuse
