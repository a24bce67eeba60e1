#pragma once

#include <source_location>

namespace fuse {

/// Where the user called what works through several operations of the library,
/// such as an optimizer's step: messages name that place instead of the
/// library's own lines. For a scope on this thread; the outermost counts.
class CallPlace {
 public:
  explicit CallPlace(std::source_location place) : previous_(current) {
    if (current.line() == 0) current = place;
  }
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;
  ~CallPlace() { current = previous_; }

  /// The place of the call in progress, else `place`.
  static std::source_location or_else(std::source_location place) {
    return current.line() == 0 ? place : current;
  }

 private:
  static inline thread_local std::source_location current;
  std::source_location previous_;
};

}  // namespace fuse
