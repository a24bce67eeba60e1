#include "fusebook/runtime/phase_gate.h"

#include <sched.h>

#include "fusebook/runtime/pause_cpu.h"

namespace fuse {
namespace {

// So many looks before others get the CPU: they may need it for what this waits
// for.
constexpr int patience = 2000;

}  // namespace

void PhaseGate::wait_for(int phase) const {
  for (int turn = 0; open_.load(std::memory_order_acquire) < phase; ++turn) {
    if (turn < patience) {
      pause_cpu();
    } else {
      sched_yield();
    }
  }
}

}  // namespace fuse
