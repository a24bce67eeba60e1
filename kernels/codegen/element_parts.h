#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "fusebook/ir/plan.h"

namespace fuse {

/// The two parts in which a body in lanes computes an element, where it has any
/// division or root: a processor takes long for one, and only so many operations
/// can wait for it at a time. So a loop begins the next elements before it completes
/// these.
class ElementParts {
 public:
  /// One part alone.
  ElementParts() = default;
  /// Of a body in lanes.
  explicit ElementParts(const Body& body);

  /// False where nothing waits, or there is nothing to do meanwhile, and for long
  /// bodies.
  bool two() const { return two_; }
  /// True for a value of the second part: it waits for a division or a root, or is
  /// one.
  bool waits(std::int32_t id) const { return two_ && waits_[std::size_t(id)]; }
  /// The values of the first part that the second one reads, in their order.
  const std::set<std::int32_t>& kept() const { return kept_; }

 private:
  void find_waiting(const Body& body);
  void find_kept(const Body& body);

  bool two_ = false;
  std::vector<bool> waits_;
  std::set<std::int32_t> kept_;
};

}  // namespace fuse
