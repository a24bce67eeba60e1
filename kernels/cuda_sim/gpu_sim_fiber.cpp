#include "fusebook/cuda_sim/gpu_sim_fiber.h"

#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

#include <mutex>
#include <vector>
#endif

namespace fuse {
namespace {

// Kernels are leaf functions and need little stack.
constexpr std::size_t stack_bytes = 64 * 1024;
// The address sanitizer uses whole pages around a stack.
constexpr std::size_t page_bytes = 4096;

thread_local SimFiber* running = nullptr;

#if defined(__SANITIZE_THREAD__)
// The thread sanitizer treats each stack as a thread, and creating one takes
// longer than most launches: so they are reused.
class IdleThreads {
 public:
  void* take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return __tsan_create_fiber(0);
    void* const thread = idle_.back();
    idle_.pop_back();
    return thread;
  }
  void give_back(void* thread) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(thread);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> idle_;
};

IdleThreads& idle_threads() {
  static auto* const all = new IdleThreads;  // outlives every static object
  return *all;
}
#endif

}  // namespace

SimFiber::SimFiber()
    : memory_(static_cast<char*>(std::aligned_alloc(page_bytes, stack_bytes))) {
  if (memory_ == nullptr) throw std::bad_alloc();
  inside_.stack = memory_.get();
  inside_.bytes = stack_bytes;
#if defined(__SANITIZE_THREAD__)
  inside_.thread = idle_threads().take();
#endif
}

SimFiber::~SimFiber() {
#if defined(__SANITIZE_THREAD__)
  idle_threads().give_back(inside_.thread);
#endif
}

void SimFiber::start(void (*body)()) {
  body_ = body;
  inside_.fake_stack = nullptr;
  getcontext(&inside_.context);
  inside_.context.uc_stack.ss_sp = memory_.get();
  inside_.context.uc_stack.ss_size = stack_bytes;
  makecontext(&inside_.context, &SimFiber::enter, 0);
}

void SimFiber::resume() {
  running = this;
#if defined(__SANITIZE_THREAD__)
  outside_.thread = __tsan_get_current_fiber();
#endif
  change(outside_, inside_, false);
}

void SimFiber::pause() { change(inside_, outside_, false); }

// The thread sanitizer counts calls and returns. This function never returns,
// and neither does its last switch.
__attribute__((no_sanitize("thread"))) void SimFiber::enter() {
  SimFiber& fiber = *running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &fiber.outside_.stack,
                                  &fiber.outside_.bytes);
#endif
  fiber.body_();
  change(fiber.inside_, fiber.outside_, true);
}

__attribute__((noinline, no_sanitize("thread"))) void SimFiber::change(
    Side& from, Side& to, [[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack,
                                 to.stack, to.bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to.thread, 0);
#endif
  swapcontext(&from.context, &to.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack, &to.stack, &to.bytes);
#endif
}

}  // namespace fuse
