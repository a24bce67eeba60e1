#include "fusebook/jit/instruction_set.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

#include <array>
#include <cstdio>
#else
#include <fstream>
#include <string_view>
#endif

namespace fuse {
namespace {

#if defined(__x86_64__) || defined(__i386__)

struct Leaf {
  unsigned number;
  unsigned part;
  // The bits of eax, ebx, ecx, edx that describe the instruction set. The
  // others differ between cores of one machine.
  std::array<unsigned, 4> mask;
};

constexpr unsigned all = 0xffffffffU;
// Few, because a virtual machine takes microseconds to answer each.
constexpr std::array<Leaf, 4> leaves = {{
    {0x1, 0, {all, 0, all, all}},
    {0x7, 0, {all, all, all, all}},
    {0x7, 1, {all, all, all, all}},
    {0x80000001, 0, {all, 0, all, all}},
}};

using Registers = std::array<unsigned, 4>;

Registers ask(unsigned number, unsigned part) {
  Registers r = {};
  __cpuid_count(number, part, r[0], r[1], r[2], r[3]);
  return r;
}

std::string in_hex(const char* label, unsigned long long value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%s%llx", label, value);
  return text.data();
}

// The register states enabled by the operating system. They determine whether
// AVX code may run; a CPU without xgetbv has none.
unsigned long long enabled_states() {
  constexpr unsigned osxsave = 1U << 27;
  if ((ask(1, 0)[2] & osxsave) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<unsigned long long>(high) << 32) | low;
}

std::string describe() {
  const Registers vendor = ask(0, 0);
  std::string text = "x86";
  for (int i = 1; i < 4; ++i) text += in_hex(i == 1 ? " " : ",", vendor[i]);
  for (const Leaf& leaf : leaves) {
    if (leaf.number < 0x80000000U && leaf.number > vendor[0]) continue;
    const Registers r = ask(leaf.number, leaf.part);
    text += in_hex(" ", leaf.number) + in_hex(".", leaf.part);
    for (int i = 0; i < 4; ++i) {
      text += in_hex(i == 0 ? ":" : ",", r[i] & leaf.mask[i]);
    }
  }
  return text + in_hex(" states:", enabled_states());
}

#else

// The kernel's description of the first CPU, without entries unrelated to its
// instructions.
std::string describe() {
  std::ifstream file("/proc/cpuinfo");
  std::string text = "cpu";
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string_view view(line);
    if (view.starts_with("processor") || view.find("MHz") != view.npos) {
      continue;
    }
    text += "; " + line;
  }
  return text;
}

#endif

}  // namespace

const std::string& instruction_set() {
  // Never destroyed: it may be used while the process exits.
  static const auto* const text = new std::string(describe());
  return *text;
}

}  // namespace fuse
