#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// How lists differ from those that a table was made for.
enum class Change {
  none,   ///< the same memory, whatever the lists are called
  moved,  ///< as many tensors of the same sizes and strides, some elsewhere
  other,
};

/// The lists that a table was built for: what they were, not the memory itself.
/// Lists that are made anew in each call have other ids each time, but where
/// they have the same addresses, sizes and strides the table is the same.
class BoundLists {
 public:
  /// For lists of the same structure.
  Change compare(std::span<const ListView> lists) const;
  void assign(std::span<const ListView> lists);
  /// Takes over the ids of lists that match, which are faster to compare.
  void rename(std::span<const ListView> lists);
  /// Takes over the addresses of lists that have only moved.
  void move(std::span<const ListView> lists);
  void clear() { bound_.clear(); }
  bool empty() const { return bound_.empty(); }

  /// Calls visit(list, from, to) for each list that may have moved, with its
  /// addresses as they were and as they are.
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
    std::vector<std::int64_t> layouts;  // rank, sizes and strides of each
  };

  static Change compare(const Bound& bound, const ListView& list);

  std::vector<Bound> bound_;
};

/// A number for the memory of lists: different, as good as always, for lists
/// that lie elsewhere or have other sizes.
std::uint64_t content_of(std::span<const ListView> lists);

}  // namespace fuse
