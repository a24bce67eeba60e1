#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// Determines which lists of a program run through one loop, because operations
/// combine them, directly or through others. Slots and values represent lists.
class JoinedLists {
 public:
  using Id = std::int32_t;

  explicit JoinedLists(const Program& program);
  void clear();

  Id of_slot(std::int32_t slot) const { return slot; }
  Id of_value(ValueId value) const { return first_value_ + value; }

  /// Joins the lists of a value, or of a slot, with others. Returns why they
  /// cannot share a loop: different numbers of elements or, with strides,
  /// different shapes, or blocks.
  std::string join_value(ValueId value, Id with);
  std::string join_slot(std::int32_t slot, Id with);
  bool are_joined(std::int32_t a, std::int32_t b) const {
    return find(a) == find(b);
  }

 private:
  Id find(Id id) const;
  std::string join(Id a, Id b);
  std::string compare(Id a, Id b) const;

  const Program& program_;
  Id first_value_;
  std::vector<Id> parents_;
  // For each root, and for values of earlier parts: a slot with elements, one
  // with strides, and one in blocks; -1 if there is none.
  std::vector<std::int32_t> sized_;
  std::vector<std::int32_t> strided_;
  std::vector<std::int32_t> in_blocks_;
};

}  // namespace fuse
