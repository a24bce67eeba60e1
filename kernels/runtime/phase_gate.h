#pragma once

#include <atomic>

namespace fuse {

/// Keeps the parts of a parallel region in phases: no part of a phase begins
/// before all of the phase before it are done. Threads must take parts in
/// ascending order, as `parallel_run` makes them, so that whoever waits waits for
/// parts that others are working on.
class PhaseGate {
 public:
  /// Back to the first phase; between regions.
  void reset() {
    open_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }
  /// Waits until a phase may begin.
  void wait_for(int phase) const;
  /// Reports a part as done. True for the last of the `parts` of its phase: that
  /// thread then calls `open`.
  bool finish(int parts) {
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 < parts) return false;
    done_.store(0, std::memory_order_relaxed);
    return true;
  }
  /// Lets a phase begin.
  void open(int phase) { open_.store(phase, std::memory_order_release); }

 private:
  std::atomic<int> open_ = 0;
  std::atomic<int> done_ = 0;
};

}  // namespace fuse
