#pragma once

#include "fusebook/runtime/launch_table.h"

namespace fuse {

/// Something that can run a plan over a bound table.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;
  /// Runs the whole table: one launch. One at a time.
  virtual void launch(const Table& table) = 0;
};

}  // namespace fuse
