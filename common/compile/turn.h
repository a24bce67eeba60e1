#pragma once

#include <atomic>

#include "fusebook/support/error.h"

namespace fuse {

/// For one call at a time of an optimizer that others may reach meanwhile. Throws
/// Error where another thread is in one.
class Turn {
 public:
  explicit Turn(std::atomic_flag& busy) : busy_(busy) {
    if (!busy_.test_and_set()) return;
    throw Error(
        "another thread is in a step of this optimizer; let one thread at a "
        "time use it");
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { busy_.clear(); }

 private:
  std::atomic_flag& busy_;
};

}  // namespace fuse
