#include "fusebook/cuda_sim/gpu_sim_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "fusebook/cuda_sim/gpu_sim_shared.h"
#include "fusebook/cuda_sim/gpu_sim_threads.h"
#include "fusebook/prelude/host_math.h"
#include "fusebook/prelude/prelude_text.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

using Bind = void (*)(SimThread*, const void*);
using SizeOf = unsigned long (*)(int);
using Shared = void* (*)();
using Call = void (*)(void* const*);

// Who sleeps so often while nobody does anything else waits in vain.
constexpr int most_idle_rounds = 1000;

std::mutex order_mutex;
SimArrangement wanted_order;

SimArrangement arrangement() {
  const std::lock_guard lock(order_mutex);
  return wanted_order;
}

Error left_at_barrier(const std::string& kernel, std::int64_t block) {
  return Error(
      fmt::format("simulated kernel '{}': in block {} some threads wait at a "
                  "__syncthreads() that the others never reach; every thread "
                  "of a block must reach it",
                  kernel, block));
}

Error asleep(const std::string& kernel, std::int64_t block, bool alone) {
  return Error(fmt::format(
      "simulated kernel '{}': block {} waits for what no block does; {}",
      kernel, block,
      alone ? "where blocks wait for each other all must be alive: launch it "
              "cooperatively"
            : "every block must come to where the others wait"));
}

}  // namespace

void set_sim_order(SimOrder order, std::uint64_t seed) {
  const std::lock_guard lock(order_mutex);
  wanted_order = {order, seed};
}

// Runs blocks of a grid that are alive together.
class SimKernel::Alive {
 public:
  Alive(const std::string& kernel, const SimCall& call, SimSize grid,
        SimSize block)
      : kernel_(kernel), call_(call), grid_(grid), block_(block) {}

  void run(const std::vector<std::int64_t>& numbers, bool alone,
           SimArrangement& order) {
    while (blocks_.size() < numbers.size()) {
      blocks_.push_back(std::make_unique<BlockThreads>(call_, block_));
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      blocks_[i]->start(index_of(numbers[i], grid_));
    }
    for (int idle = 0;; ++idle) {
      std::int64_t waits = -1;
      for (const std::int64_t i : order.next(std::int64_t(numbers.size()))) {
        BlockThreads& block = *blocks_[std::size_t(i)];
        if (block.is_done()) continue;
        if (block.advance(order)) idle = 0;
        if (block.is_stuck()) {
          throw left_at_barrier(kernel_, numbers[std::size_t(i)]);
        }
        if (!block.is_done()) waits = numbers[std::size_t(i)];
      }
      if (waits < 0) return;
      if (idle > most_idle_rounds) throw asleep(kernel_, waits, alone);
    }
  }

 private:
  const std::string& kernel_;
  const SimCall call_;
  const SimSize grid_;
  const SimSize block_;
  std::vector<std::unique_ptr<BlockThreads>> blocks_;
};

std::string sim_kernel_source(const std::string& text,
                              const std::string& name) {
  return std::string(gpu_sim_prelude_text) + text +
         "\n#define FUSE_SIM_KERNEL " + name + "\n" + gpu_sim_trailer_text;
}

SimKernel::SimKernel(const std::string& text, const std::string& name)
    : name_(name), library_(build_library(sim_kernel_source(text, name))) {
  const auto size_of =
      reinterpret_cast<SizeOf>(library_->symbol("fuse_sim_size"));
  for (int k = 0; size_of(k) != 0; ++k) sizes_.push_back(size_of(k));
}

void SimKernel::launch(SimSize grid, SimSize block, void* const* parameters,
                       SimBlocks blocks) const {
  // All launches share the variables of blocks and the thread index.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  SimArrangement order = arrangement();
  SimThread thread = {{},
                      {},
                      {block.x, block.y, block.z},
                      {grid.x, grid.y, grid.z},
                      &BlockThreads::wait_at_barrier,
                      &BlockThreads::sleep};
  reinterpret_cast<Bind>(library_->symbol("fuse_sim_bind"))(&thread,
                                                            &host_calls);
  const auto shared =
      reinterpret_cast<Shared>(library_->symbol("fuse_sim_shared"));
  const SimCall call = {
      reinterpret_cast<Call>(library_->symbol("fuse_sim_call")), parameters,
      &thread, find_shared_memory(shared())};
  Alive alive(name_, call, grid, block);
  const auto numbers = order.next(grid.count());
  if (blocks == SimBlocks::together) {
    alive.run(numbers, false, order);
    return;
  }
  for (const std::int64_t number : numbers) alive.run({number}, true, order);
}

}  // namespace fuse
