#pragma once

#include <utility>

#include "fusebook/trace/operands.h"

namespace fuse {

/// While it lives, writing into lists on this thread changes nothing where `skip`
/// is not 0: a number, or a list of one for each tensor. The kernel decides, and
/// stores what was there before; the host need not know.
class SkipScope {
 public:
  explicit SkipScope(Operand skip) : skip_(std::move(skip)), outer_(innermost) {
    innermost = this;
  }
  SkipScope(const SkipScope&) = delete;
  SkipScope& operator=(const SkipScope&) = delete;
  ~SkipScope() { innermost = outer_; }

  /// The innermost scope of this thread, or null.
  static const SkipScope* current() { return innermost; }
  const Operand& skip() const { return skip_; }
  /// The scope around it, which applies as well; or null.
  const SkipScope* outer() const { return outer_; }

 private:
  static inline thread_local const SkipScope* innermost = nullptr;
  Operand skip_;
  const SkipScope* outer_;
};

}  // namespace fuse
