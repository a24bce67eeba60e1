#include "fusebook/layout/collapse_dims.h"

#include <algorithm>

namespace fuse {
namespace {

// With shorter lines, their number costs more than strides would.
constexpr i64 short_line = 16;

bool has_strides(const Layout& layout) { return layout.strides != nullptr; }

}  // namespace

void LineCutter::cut(std::span<const Layout> layouts, std::size_t ordered,
                     std::int64_t numel) {
  if (is_single_line(layouts, numel)) return;
  sort(ordered);
  merge();
  choose_line();
}

void LineCutter::cut_in_order(std::span<const Layout> layouts,
                              std::int64_t numel) {
  if (is_single_line(layouts, numel)) return;
  merge();
  take_line(outer_.size() - 1);
}

// Otherwise its dimensions are gathered.
bool LineCutter::is_single_line(std::span<const Layout> layouts,
                                std::int64_t numel) {
  tensors_ = layouts.size();
  outer_.clear();
  strides_.clear();
  const auto shape = std::find_if(layouts.begin(), layouts.end(), has_strides);
  if (shape != layouts.end() && numel > 1) gather(layouts, *shape);
  if (outer_.empty()) {  // nothing to walk over, or row-major order everywhere
    count_ = 1;
    length_ = numel;
    line_.assign(tensors_, 1);
    return true;
  }
  return false;
}

// All dimensions except those of size 1, from first to last.
void LineCutter::gather(std::span<const Layout> layouts, const Layout& shape) {
  for (std::size_t d = 0; d < shape.rank; ++d) {
    if (shape.sizes[d] == 1) continue;
    outer_.push_back({shape.sizes[d], strides_.size()});
    i64 row_major = 1;
    for (std::size_t k = d + 1; k < shape.rank; ++k) {
      row_major *= shape.sizes[k];
    }
    for (const Layout& layout : layouts) {
      strides_.push_back(has_strides(layout) ? i64(layout.strides[d])
                                             : row_major);
    }
  }
}

void LineCutter::sort(std::size_t ordered) {
  std::stable_sort(outer_.begin(), outer_.end(),
                   [&](const Dimension& a, const Dimension& b) {
                     return strides_of(a)[ordered] > strides_of(b)[ordered];
                   });
}

// True if, in every tensor, one step of the outer dimension spans the whole
// inner one.
bool LineCutter::merges(const Dimension& outer, const Dimension& inner) const {
  const i64* const wide = strides_of(outer);
  const i64* const narrow = strides_of(inner);
  for (std::size_t t = 0; t < tensors_; ++t) {
    if (wide[t] != narrow[t] * inner.size) return false;
  }
  return true;
}

void LineCutter::merge() {
  std::size_t last = 0;
  for (std::size_t d = 1; d < outer_.size(); ++d) {
    if (merges(outer_[last], outer_[d])) {
      outer_[last] = {outer_[last].size * outer_[d].size, outer_[d].strides};
    } else {
      outer_[++last] = outer_[d];
    }
  }
  outer_.resize(last + 1);
}

// Chooses the innermost dimension, unless it is too short to be worth a line.
void LineCutter::choose_line() {
  auto line = outer_.end() - 1;
  if (line->size < short_line) {
    const auto longest = std::max_element(
        outer_.begin(), outer_.end(),
        [](const auto& a, const auto& b) { return a.size < b.size; });
    if (longest->size > line->size) line = longest;
  }
  take_line(std::size_t(line - outer_.begin()));
}

void LineCutter::take_line(std::size_t dimension) {
  const auto line = outer_.begin() + std::ptrdiff_t(dimension);
  length_ = line->size;
  line_.assign(strides_of(*line), strides_of(*line) + tensors_);
  outer_.erase(line);
  count_ = 1;
  for (const Dimension& d : outer_) count_ *= d.size;
}

// Moves to the next line: the last dimension varies fastest.
void LineCutter::advance() {
  for (std::size_t d = outer_.size(); d-- > 0;) {
    const i64* const strides = strides_of(outer_[d]);
    const i64 steps = ++index_[d] < outer_[d].size ? 1 : 1 - outer_[d].size;
    for (std::size_t t = 0; t < tensors_; ++t) {
      offsets_[t] += steps * strides[t];
    }
    if (steps > 0) return;
    index_[d] = 0;
  }
}

}  // namespace fuse
