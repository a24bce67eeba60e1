#include "fusebook/cuda_sim/gpu_sim_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <utility>

#include "fusebook/cuda_sim/gpu_sim_fiber.h"
#include "fusebook/prelude/host_math.h"
#include "fusebook/prelude/prelude_text.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

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
};

using Bind = void (*)(SimThread*, const void*);
using SizeOf = unsigned long (*)(int);
using Call = void (*)(void* const*);

struct Order {
  SimOrder kind = SimOrder::ascending;
  std::uint64_t seed = 0;
};
std::mutex order_mutex;
Order wanted_order;

std::uint64_t next_random(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return state >> 33;
}

std::vector<std::int64_t> arranged(std::int64_t count, const Order& order,
                                   std::uint64_t& state) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  if (order.kind == SimOrder::descending) {
    std::reverse(numbers.begin(), numbers.end());
  }
  if (order.kind == SimOrder::shuffled) {
    for (std::size_t i = numbers.size(); i > 1; --i) {
      std::swap(numbers[i - 1], numbers[next_random(state) % i]);
    }
  }
  return numbers;
}

SimIndex index_of(std::int64_t number, SimSize size) {
  const auto n = std::uint64_t(number);
  return {unsigned(n % size.x), unsigned(n / size.x % size.y),
          unsigned(n / size.x / size.y)};
}

// One thread of the current block.
struct Fiber {
  SimFiber stack;
  bool waits = false;
  bool done = false;
};

class BlockRun;
// set while one of its threads runs
thread_local BlockRun* running_block = nullptr;

// Runs the threads of one block in turn.
class BlockRun {
 public:
  BlockRun(Call call, void* const* parameters, SimThread& thread, SimSize block)
      : call_(call),
        parameters_(parameters),
        thread_(thread),
        block_(block),
        fibers_(std::size_t(block.count())) {}

  // False if threads wait for others that have ended.
  bool run(const Order& order, std::uint64_t& state) {
    for (Fiber& fiber : fibers_) prepare(fiber);
    for (bool any = true; any;) {
      any = false;
      for (const std::int64_t t : arranged(block_.count(), order, state)) {
        Fiber& fiber = fibers_[t];
        if (fiber.done) continue;
        resume(fiber, t);
        any = any || fiber.waits;
      }
      if (any && !all_wait()) return false;
    }
    return true;
  }

  static void wait_at_barrier() {
    BlockRun& run = *running_block;
    Fiber& fiber = *run.running_;
    fiber.waits = true;
    fiber.stack.pause();
  }

 private:
  static void enter() {
    BlockRun& run = *running_block;
    run.call_(run.parameters_);
    run.running_->done = true;
    run.running_->waits = false;
  }

  static void prepare(Fiber& fiber) {
    fiber.done = fiber.waits = false;
    fiber.stack.start(&BlockRun::enter);
  }

  void resume(Fiber& fiber, std::int64_t number) {
    thread_.thread = index_of(number, block_);
    fiber.waits = false;
    running_ = &fiber;
    running_block = this;
    fiber.stack.resume();
    running_block = nullptr;
  }

  bool all_wait() const {
    return std::all_of(fibers_.begin(), fibers_.end(),
                       [](const Fiber& fiber) { return fiber.waits; });
  }

  Call call_;
  void* const* parameters_;
  SimThread& thread_;
  SimSize block_;
  std::vector<Fiber> fibers_;
  Fiber* running_ = nullptr;
};

}  // namespace

void set_sim_order(SimOrder order, std::uint64_t seed) {
  const std::lock_guard lock(order_mutex);
  wanted_order = {order, seed};
}

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

void SimKernel::launch(SimSize grid, SimSize block,
                       void* const* parameters) const {
  // Blocks share the text's __shared__ variables and the thread index.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Order order;
  {
    const std::lock_guard order_lock(order_mutex);
    order = wanted_order;
  }
  SimThread thread = {{},
                      {},
                      {block.x, block.y, block.z},
                      {grid.x, grid.y, grid.z},
                      &BlockRun::wait_at_barrier};
  reinterpret_cast<Bind>(library_->symbol("fuse_sim_bind"))(&thread,
                                                            &host_calls());
  const auto call = reinterpret_cast<Call>(library_->symbol("fuse_sim_call"));
  BlockRun run(call, parameters, thread, block);
  std::uint64_t state = order.seed;
  for (const std::int64_t b : arranged(grid.count(), order, state)) {
    thread.block = index_of(b, grid);
    if (run.run(order, state)) continue;
    throw Error(
        fmt::format("simulated kernel '{}': in block {} some threads wait at a "
                    "__syncthreads() that the others never reach; every thread "
                    "of a block must reach it",
                    name_, b));
  }
}

}  // namespace fuse
