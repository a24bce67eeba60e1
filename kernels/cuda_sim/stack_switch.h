#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FUSE_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define FUSE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUSE_ASAN 1
#elif __has_feature(thread_sanitizer)
#define FUSE_TSAN 1
#endif
#endif

// swapcontext() makes a system call at each switch to set the signal mask, which
// never changes here. It is the fallback for other processors, for sanitizers,
// which know it, and for code compiled for shadow stacks, as Ubuntu's g++ does
// unless told -fcf-protection=none.
#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__) && \
    !defined(FUSE_ASAN) && !defined(FUSE_TSAN) &&                   \
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
