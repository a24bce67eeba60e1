#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuse {

/// The memory that a launch stores into, as ranges that do not touch: says
/// without looking at all tensors whether one that has moved lies in it.
class StoredMemory {
 public:
  void clear();
  /// Adds the bytes from `begin` up to, not including, `end`.
  void add(std::uintptr_t begin, std::uintptr_t end);
  /// To be called when all was added, before the first question.
  void settle();

  /// True when a byte from `begin` up to, not including, `end` is among them.
  /// Fast where questions come in the order of memory.
  bool touches(std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end) return false;
    if (!fits(last_, begin)) find(begin);
    return last_ < begins_.size() && begins_[last_] < end;
  }
  /// How many there are.
  std::uintptr_t bytes() const;

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  // Is `place` that of the first range that ends behind an address?
  bool fits(std::size_t place, std::uintptr_t address) const {
    return (place == 0 || ends_[place - 1] <= address) &&
           (place == ends_.size() || ends_[place] > address);
  }
  void find(std::uintptr_t address);
  std::size_t search(std::uintptr_t address) const;

  std::vector<Range> added_;
  std::vector<std::uintptr_t> begins_;  // sorted, and so are the ends
  std::vector<std::uintptr_t> ends_;
  std::size_t last_ = 0;  // where the last question was answered
};

}  // namespace fuse
