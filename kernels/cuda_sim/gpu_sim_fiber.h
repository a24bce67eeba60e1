#pragma once

#include <cstddef>

#include "fusebook/cuda_sim/stack_switch.h"

namespace fuse {

/// A separate stack, on which a function runs that can pause and continue
/// later. The address and thread sanitizers assume one stack per thread, so
/// they are told of every switch.
class SimFiber {
 public:
  SimFiber();
  ~SimFiber();
  SimFiber(const SimFiber&) = delete;
  SimFiber& operator=(const SimFiber&) = delete;

  /// The next resume() calls `body`, which must not throw. A body still paused
  /// on this stack is abandoned: its destructors never run.
  void start(void (*body)());

  /// Runs the body until it calls pause() or returns.
  void resume();

  /// Called by the body: returns to the caller of resume().
  void pause();

 private:
  // One of the two stacks, while the other one is in use.
  struct Side {
    StackPlace place;
    const void* stack = nullptr;
    std::size_t bytes = 0;
    void* fake_stack = nullptr;  // the address sanitizer's
    void* thread = nullptr;      // the thread sanitizer's
  };
  static void enter();
  static void change(Side& from, Side& to, bool for_good);

  char* memory_;
  void (*body_)() = nullptr;
  Side inside_;
  Side outside_;
};

}  // namespace fuse
