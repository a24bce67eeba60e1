#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/cuda_sim/gpu_sim_fiber.h"

namespace fuse {

// The same as in gpu_sim_prelude.h.
struct SimIndex {
  unsigned x;
  unsigned y;
  unsigned z;
};
struct SimThread {
  SimIndex thread;
  SimIndex block;
  SimIndex block_size;
  SimIndex grid_size;
  void (*barrier)();
  void (*sleep)();
};

SimIndex index_of(std::int64_t number, SimSize size);

/// In which order things are done that a device does in any.
struct SimArrangement {
  SimOrder order = SimOrder::ascending;
  std::uint64_t seed = 0;

  /// The numbers below `count`, in the next such order.
  std::vector<std::int64_t> next(std::int64_t count);
};

/// What the threads of a block run, and what is theirs while they do.
struct SimCall {
  void (*call)(void* const*) = nullptr;
  void* const* parameters = nullptr;
  SimThread* thread = nullptr;
  /// The variables of the block whose turn it is.
  std::span<char> shared;
};

/// The threads of one block, which run in turn, each on a stack of its own, until
/// they wait at a barrier, sleep, or end. Blocks that are alive together take
/// turns, too: what one shares is put aside meanwhile.
class BlockThreads {
 public:
  BlockThreads(const SimCall& call, SimSize block);

  /// Begins a block anew. What it shares holds nothing of use at first.
  void start(SimIndex number);
  /// Each thread that may go on does so once. False if all of them have only
  /// gone to sleep again.
  bool advance(SimArrangement& arrangement);

  bool is_done() const;
  /// Threads wait at a barrier for others that have ended.
  bool is_stuck() const;

  /// Called by a thread.
  static void wait_at_barrier();
  static void sleep();

 private:
  enum class State : std::uint8_t { ready, waits, sleeps, done };
  struct Thread {
    SimFiber stack;
    SimIndex index = {};
    State state = State::done;
  };

  static void enter();
  static void pause(State state);
  void resume(Thread& thread);
  std::size_t count(State state) const;

  const SimCall call_;
  const SimSize block_;
  SimIndex number_ = {};
  std::vector<Thread> threads_;
  std::vector<char> shared_;
  Thread* running_ = nullptr;
};

}  // namespace fuse
