#pragma once

#include <cstddef>

// swapcontext() asks the system twice at each switch, for the mask of signals,
// which here is always the same. It serves where there is nothing better: other
// processors, stacks that the processor itself keeps track of, and sanitizers,
// which know it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUSE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FUSE_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && !defined(FUSE_SANITIZED) && \
    !(defined(__CET__) && (__CET__ & 2) != 0)
#define FUSE_OWN_STACK_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace fuse {

/// Where a thread left one of its stacks.
struct StackPlace {
#if defined(FUSE_OWN_STACK_SWITCH)
  void* top = nullptr;
#else
  ucontext_t context{};
#endif
};

/// The place on a fresh stack where `body` begins, which never returns.
void begin_stack(StackPlace& place, char* memory, std::size_t bytes,
                 void (*body)());

/// Leaves the stack that is in use, and goes on where another one was left.
void switch_stacks(StackPlace& from, StackPlace& to);

}  // namespace fuse
