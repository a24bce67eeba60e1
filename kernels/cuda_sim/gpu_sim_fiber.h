#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace fuse {

/// A stack of its own, on which a function runs that can stop in the middle and
/// go on later. The address and the thread sanitizer know of one stack a thread,
/// so they are told of every change.
class SimFiber {
 public:
  SimFiber();
  ~SimFiber();
  SimFiber(const SimFiber&) = delete;
  SimFiber& operator=(const SimFiber&) = delete;

  /// The next resume() calls `body`, which must not throw. What still waits on
  /// this stack is forgotten: none of its destructors run.
  void start(void (*body)());

  /// Runs the body until it calls pause() or returns.
  void resume();

  /// Called by the body: goes back to the caller of resume().
  void pause();

 private:
  // One of the two stacks, while the other one is in use.
  struct Side {
    ucontext_t context{};
    const void* stack = nullptr;
    std::size_t bytes = 0;
    void* fake_stack = nullptr;  // the address sanitizer's
    void* thread = nullptr;      // the thread sanitizer's
  };
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  static void enter();
  static void change(Side& from, Side& to, bool for_good);

  std::unique_ptr<char, Free> memory_;
  void (*body_)() = nullptr;
  Side inside_;
  Side outside_;
};

}  // namespace fuse
