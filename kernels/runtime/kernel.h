#pragma once

#include "fusebook/runtime/launch_table.h"

namespace fuse {

/// Runs a plan over a bound table.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  /// Runs the whole table as one launch. Not thread-safe.
  virtual void launch(const Table& table) = 0;
};

}  // namespace fuse
