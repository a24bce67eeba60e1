#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// How lists differ from those that a table was made for.
enum class Change {
  none,  ///< the same memory, whatever the ids
  /// the same number of tensors, sizes and strides, but some have moved
  moved,
  other,
};

/// The lists that a table was built for: their description, not the memory
/// itself. Lists made again in each call have new ids each time, but with the
/// same addresses, sizes and strides the table is the same.
class BoundLists {
 public:
  /// Requires lists of the same structure.
  Change compare(std::span<const ListView> lists) const;
  void assign(std::span<const ListView> lists);
  /// Takes the ids of matching lists, which are faster to compare.
  void rename(std::span<const ListView> lists);
  /// Takes the addresses of lists that have only moved.
  void move(std::span<const ListView> lists);
  void clear() { bound_.clear(); }
  bool empty() const { return bound_.empty(); }

  /// Calls visit(list, from, to) for each list that may have moved, with its
  /// old and new addresses.
  template <class Visit>
  void for_each_moved(std::span<const ListView> lists, Visit visit) const {
    for (std::size_t i = 0; i < bound_.size(); ++i) {
      if (bound_[i].id == lists[i].id) continue;
      visit(i, bound_[i].addresses.data(), lists[i].addresses);
    }
  }

 private:
  struct Bound {
    std::uint64_t id;
    std::vector<void*> addresses;
    std::vector<std::int64_t> numels;
    // rank, sizes and strides of each tensor
    std::vector<std::int64_t> layouts;
  };

  static Change compare(const Bound& bound, const ListView& list);

  std::vector<Bound> bound_;
};

/// A hash of the lists' memory: almost certainly different for lists at other
/// addresses or with other sizes.
std::uint64_t content_of(std::span<const ListView> lists);

}  // namespace fuse
