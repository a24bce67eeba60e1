#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <array>

namespace fuse {

/// What the instruction cpuid leaves in eax, ebx, ecx and edx.
using X86Registers = std::array<unsigned, 4>;

inline X86Registers ask_x86(unsigned number, unsigned part) {
  X86Registers r = {};
  __cpuid_count(number, part, r[0], r[1], r[2], r[3]);
  return r;
}

/// The register states enabled by the operating system. They determine whether
/// AVX code may run; a CPU without xgetbv has none.
inline unsigned long long enabled_x86_states() {
  constexpr unsigned osxsave = 1U << 27;
  if ((ask_x86(1, 0)[2] & osxsave) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

}  // namespace fuse

#endif
