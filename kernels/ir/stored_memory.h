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
  bool touches(std::uintptr_t begin, std::uintptr_t end);

 private:
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  bool fits(std::size_t place, std::uintptr_t address) const;
  std::size_t search(std::uintptr_t address) const;

  std::vector<Range> added_;
  std::vector<std::uintptr_t> begins_;  // sorted, and so are the ends
  std::vector<std::uintptr_t> ends_;
  std::size_t last_ = 0;  // where the last question was answered
};

}  // namespace fuse
