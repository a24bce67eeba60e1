#pragma once

#include <map>
#include <mutex>

#include "fusebook/prelude/target.h"

namespace fuse {

/// While it lives, counts the elements that interpreted launches, on any
/// thread, move between memory and the processor, by the address of the
/// tensor's first element. Tiles fit into the innermost cache, so of several
/// reads of an element within one tile only the first comes from memory, and
/// none after a store; every store counts. One counter at a time.
class TrafficCounter {
 public:
  struct Elements {
    i64 loads = 0;
    i64 stores = 0;
  };

  TrafficCounter();
  TrafficCounter(const TrafficCounter&) = delete;
  TrafficCounter& operator=(const TrafficCounter&) = delete;
  ~TrafficCounter();

  /// Valid only while nothing is launched.
  const std::map<const void*, Elements>& tensors() const { return tensors_; }

  /// The active counter, or nullptr.
  static TrafficCounter* current();
  void add(const void* tensor, Elements moved);

 private:
  std::mutex mutex_;
  std::map<const void*, Elements> tensors_;
};

}  // namespace fuse
