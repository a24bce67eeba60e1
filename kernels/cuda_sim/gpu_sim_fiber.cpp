#include "fusebook/cuda_sim/gpu_sim_fiber.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(FUSE_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(FUSE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace fuse {
namespace {

// Kernels are leaf functions and need little stack.
constexpr std::size_t stack_bytes = 64 * 1024;
// The address sanitizer uses whole pages around a stack.
constexpr std::size_t page_bytes = 4096;
// The address sanitizer forgets what lay on a stack when its memory is freed.
#if defined(FUSE_ASAN)
constexpr std::size_t most_idle_stacks = 0;
#else
constexpr std::size_t most_idle_stacks = 1024;
#endif

thread_local SimFiber* running = nullptr;

// Kept from one launch for the next: allocating a stack takes longer than running
// most blocks, and so does creating the thread sanitizer's record of one. Nobody
// waits for another thread, which after a fork() may be gone.
class Idle {
 public:
  explicit Idle(std::size_t most) : most_(most) { things_.reserve(most); }

  // One that was given back, or null.
  void* take() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || things_.empty()) return nullptr;
    void* const thing = things_.back();
    things_.pop_back();
    return thing;
  }
  // False if there are enough, or another thread is here.
  bool keep(void* thing) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || things_.size() == most_) return false;
    things_.push_back(thing);
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<void*> things_;
  const std::size_t most_;
};

// Both outlive every static object.
Idle& idle_stacks() {
  static auto* const all = new Idle(most_idle_stacks);
  return *all;
}
#if defined(FUSE_TSAN)
constexpr std::size_t most_idle_threads = 8192;
Idle& idle_threads() {
  static auto* const all = new Idle(most_idle_threads);
  return *all;
}
#endif

char* take_stack() {
  void* memory = idle_stacks().take();
  if (memory == nullptr) memory = std::aligned_alloc(page_bytes, stack_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

}  // namespace

SimFiber::SimFiber() : memory_(take_stack()) {
  inside_.stack = memory_;
  inside_.bytes = stack_bytes;
#if defined(FUSE_TSAN)
  inside_.thread = idle_threads().take();
  if (inside_.thread == nullptr) inside_.thread = __tsan_create_fiber(0);
#endif
}

SimFiber::~SimFiber() {
#if defined(FUSE_TSAN)
  if (!idle_threads().keep(inside_.thread)) {
    __tsan_destroy_fiber(inside_.thread);
  }
#endif
  if (!idle_stacks().keep(memory_)) std::free(memory_);
}

void SimFiber::start(void (*body)()) {
  body_ = body;
  inside_.fake_stack = nullptr;
  begin_stack(inside_.place, memory_, stack_bytes, &SimFiber::enter);
}

void SimFiber::resume() {
  running = this;
#if defined(FUSE_TSAN)
  outside_.thread = __tsan_get_current_fiber();
#endif
  change(outside_, inside_, false);
}

void SimFiber::pause() { change(inside_, outside_, false); }

// The thread sanitizer counts calls and returns. This function never returns,
// and neither does its last switch.
__attribute__((no_sanitize("thread"))) void SimFiber::enter() {
  SimFiber& fiber = *running;
#if defined(FUSE_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &fiber.outside_.stack,
                                  &fiber.outside_.bytes);
#endif
  fiber.body_();
  change(fiber.inside_, fiber.outside_, true);
}

__attribute__((noinline, no_sanitize("thread"))) void SimFiber::change(
    Side& from, Side& to, [[maybe_unused]] bool for_good) {
#if defined(FUSE_ASAN)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack,
                                 to.stack, to.bytes);
#endif
#if defined(FUSE_TSAN)
  __tsan_switch_to_fiber(to.thread, 0);
#endif
  switch_stacks(from.place, to.place);
#if defined(FUSE_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, &to.stack, &to.bytes);
#endif
}

}  // namespace fuse
