#pragma once

#include <atomic>

namespace fuse {

/// Lets one thread at a time into something without a lock; that thread may
/// enter repeatedly.
class OneThread {
 public:
  /// False if another thread is inside.
  bool enter() {
    const void* const me = this_thread();
    if (owner_.load(std::memory_order_relaxed) == me) {
      ++depth_;
      return true;
    }
    const void* nobody = nullptr;
    if (!owner_.compare_exchange_strong(nobody, me,
                                        std::memory_order_acquire)) {
      return false;
    }
    depth_ = 1;
    return true;
  }
  void leave() {
    if (--depth_ == 0) owner_.store(nullptr, std::memory_order_release);
  }

 private:
  // Unique address per thread.
  static const void* this_thread() {
    static thread_local const char here = 0;
    return &here;
  }

  std::atomic<const void*> owner_ = nullptr;
  int depth_ = 0;  // of the owner
};

}  // namespace fuse
