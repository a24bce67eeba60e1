#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "fusebook/trace/recorder.h"
#include "fusebook/trace/undo.h"

namespace fuse {

/// A value of the host that calls of a compiled function change: if what such a call
/// recorded is not executed, the value is again what it was before. Copies have
/// values of their own.
template <class T>
class Revertible {
 public:
  Revertible() = default;
  Revertible(const Revertible& other) : held_(held_of(*other)) {}
  Revertible& operator=(const Revertible& other) {
    if (this != &other) change() = *other;
    return *this;
  }
  ~Revertible() = default;

  const T& operator*() const { return held_->value; }
  const T* operator->() const { return &held_->value; }

  /// The value, to be changed now.
  T& change() {
    Recorder* const recorder = Recorder::current();
    if (recorder != nullptr && held_->recording != recorder->serial()) {
      held_->before = held_->value;
      held_->recording = recorder->serial();
      recorder->on_failure(held_);
    }
    return held_->value;
  }

 private:
  struct Held final : Undo {
    void undo() override {
      value = std::move(before);
      keep();
    }
    void keep() override {
      recording = 0;
      before = T();
    }

    T value = {};
    T before = {};
    std::uint64_t recording = 0;  // in which `before` was noted
  };

  static std::shared_ptr<Held> held_of(const T& value) {
    auto held = std::make_shared<Held>();
    held->value = value;
    return held;
  }

  std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace fuse
