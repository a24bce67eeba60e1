#pragma once

namespace fuse {

/// Lets the other thread of a core work while this one waits in a loop.
inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace fuse
