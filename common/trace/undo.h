#pragma once

namespace fuse {

/// An immediate effect of a compiled function's call, besides what it recorded:
/// it is reverted if the recording ends without having been executed.
class Undo {
 public:
  Undo() = default;
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  virtual ~Undo() = default;
  virtual void undo() = 0;
  /// Commits the effect: the recording was executed.
  virtual void keep() = 0;
};

}  // namespace fuse
