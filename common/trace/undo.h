#pragma once

namespace fuse {

/// What a call of a compiled function did at once, next to what it recorded: it
/// is taken back when the recording ends without having been executed.
class Undo {
 public:
  Undo() = default;
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  virtual ~Undo() = default;
  virtual void undo() = 0;
  /// It stays: the recording was executed.
  virtual void keep() = 0;
};

}  // namespace fuse
