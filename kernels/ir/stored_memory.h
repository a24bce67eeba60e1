#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuse {

/// The memory that a launch stores to, as disjoint ranges: tells whether a
/// tensor that has moved overlaps it, without visiting all tensors.
class StoredMemory {
 public:
  void clear();
  /// Adds the bytes from `begin` up to, but not including, `end`.
  void add(std::uintptr_t begin, std::uintptr_t end);
  /// Call this after everything was added, before the first query.
  void settle();

  /// True if a byte from `begin` up to, but not including, `end` is among them.
  /// Fast if queries are in memory order.
  bool touches(std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end || (begin >= gap_.begin && end <= gap_.end)) return false;
    if (!fits(last_, begin)) find(begin);
    return last_ < begins_.size() && begins_[last_] < end;
  }
  /// Total number of bytes.
  std::uintptr_t bytes() const;

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  // True if `place` is the first range that ends after an address.
  bool fits(std::size_t place, std::uintptr_t address) const {
    return (place == 0 || ends_[place - 1] <= address) &&
           (place == ends_.size() || ends_[place] > address);
  }
  void find(std::uintptr_t address);
  std::size_t search(std::uintptr_t address) const;

  std::vector<Range> added_;
  std::vector<std::uintptr_t> begins_;  // sorted, and so are the ends
  std::vector<std::uintptr_t> ends_;
  std::size_t last_ = 0;  // where the last search ended
  Range gap_ = {};        // between that range and the one before it
};

}  // namespace fuse
