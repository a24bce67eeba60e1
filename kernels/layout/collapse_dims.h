#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/layout/layout.h"
#include "fusebook/prelude/target.h"

namespace fuse {

/// Cuts tensors of one shape, each with its own strides, into lines: runs of
/// elements with one stride in each tensor. Dimensions that can be merged in
/// all of them are merged, so tensors that are dense in the same order are a
/// single line of stride 1. Reuses its memory from one cut to the next.
class LineCutter {
 public:
  /// Takes the layouts of tensors of `numel` elements each. A layout without
  /// strides means row-major order; all others must have the same sizes. The
  /// strides of tensor `ordered` determine the order of the lines.
  void cut(std::span<const Layout> layouts, std::size_t ordered,
           std::int64_t numel);

  /// The same with lines in row-major order, whatever the strides: line k holds
  /// elements [k, k + 1) * length().
  void cut_in_order(std::span<const Layout> layouts, std::int64_t numel);

  /// Number of lines; 1 even if there are no elements.
  i64 count() const { return count_; }
  /// Number of elements in each line.
  i64 length() const { return length_; }
  /// Distance between neighbours on a line in each tensor, in elements.
  std::span<const i64> strides() const { return line_; }

  /// Calls visit(offsets) for each line with the offset of its first element in
  /// each tensor, in elements from the tensor's first element.
  template <class Visit>
  void for_each(Visit visit) {
    offsets_.assign(tensors_, 0);
    index_.assign(outer_.size(), 0);
    for (i64 line = 0; line < count_; ++line) {
      visit(std::span<const i64>(offsets_));
      advance();
    }
  }

 private:
  // One dimension of all tensors; `strides_` holds its strides from this index
  // on.
  struct Dimension {
    i64 size = 0;
    std::size_t strides = 0;
  };

  const i64* strides_of(const Dimension& d) const {
    return strides_.data() + d.strides;
  }
  bool is_single_line(std::span<const Layout> layouts, std::int64_t numel);
  void gather(std::span<const Layout> layouts, const Layout& shape);
  void sort(std::size_t ordered);
  bool merges(const Dimension& outer, const Dimension& inner) const;
  void merge();
  void choose_line();
  void take_line(std::size_t dimension);
  void advance();

  std::size_t tensors_ = 0;
  i64 count_ = 0;
  i64 length_ = 0;
  std::vector<Dimension> outer_;  // from first to last in a walk
  std::vector<i64> strides_;      // for each dimension, one per tensor
  std::vector<i64> line_;
  std::vector<i64> offsets_;
  std::vector<i64> index_;
};

}  // namespace fuse
