#pragma once

#include <source_location>
#include <string>

#include "fusebook/support/source_place.h"

namespace fuse {

/// The user's call of something that runs several operations of the library,
/// such as an optimizer's step: messages name that place instead of the
/// library's own lines. Applies to a scope on this thread; the outermost one
/// wins.
class CallPlace {
 public:
  explicit CallPlace(std::source_location place) : previous_(current) {
    if (current.line() == 0) current = place;
  }
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;
  ~CallPlace() { current = previous_; }

  /// The place of the current call, else `place`.
  static std::source_location or_else(std::source_location place) {
    return current.line() == 0 ? place : current;
  }

 private:
  static inline thread_local std::source_location current;
  std::source_location previous_;
};

/// ", at file:line" for messages, with the place of the current call; empty if
/// there is none.
inline std::string at_call() {
  const std::source_location place = CallPlace::or_else({});
  return place.line() == 0 ? "" : ", at " + at(place);
}

}  // namespace fuse
