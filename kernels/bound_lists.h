#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program.h"

namespace fuse {

/// The lists that a table was built for: what they were, not the memory itself.
/// Lists that are made anew in each call have other ids each time, but where
/// they have the same addresses, sizes and strides the table is the same.
class BoundLists {
 public:
  /// True for lists, of the same structure, that lead to the same table.
  bool match(std::span<const ListView> lists) const;
  void assign(std::span<const ListView> lists);
  /// Takes over the ids of lists that match, which are faster to compare.
  void rename(std::span<const ListView> lists);
  void clear() { bound_.clear(); }

 private:
  struct Bound {
    std::uint64_t id;
    std::vector<void*> addresses;
    std::vector<std::int64_t> numels;
    std::vector<std::int64_t> layouts;  // rank, sizes and strides of each
  };

  static bool match(const Bound& bound, const ListView& list);

  std::vector<Bound> bound_;
};

}  // namespace fuse
