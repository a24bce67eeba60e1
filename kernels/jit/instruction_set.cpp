#include "fusebook/jit/instruction_set.h"

#include "fusebook/jit/x86_registers.h"

#if defined(__x86_64__) || defined(__i386__)
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

constexpr unsigned every_bit = 0xffffffffU;
// Few, because a virtual machine takes microseconds to answer each.
constexpr std::array<Leaf, 4> leaves = {{
    {0x1, 0, {every_bit, 0, every_bit, every_bit}},
    {0x7, 0, {every_bit, every_bit, every_bit, every_bit}},
    {0x7, 1, {every_bit, every_bit, every_bit, every_bit}},
    {0x80000001, 0, {every_bit, 0, every_bit, every_bit}},
}};

std::string in_hex(const char* label, unsigned long long value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%s%llx", label, value);
  return text.data();
}

std::string describe() {
  const X86Registers vendor = ask_x86(0, 0);
  std::string text = "x86";
  for (int i = 1; i < 4; ++i) text += in_hex(i == 1 ? " " : ",", vendor[i]);
  for (const Leaf& leaf : leaves) {
    if (leaf.number < 0x80000000U && leaf.number > vendor[0]) continue;
    const X86Registers r = ask_x86(leaf.number, leaf.part);
    text += in_hex(" ", leaf.number) + in_hex(".", leaf.part);
    for (int i = 0; i < 4; ++i) {
      text += in_hex(i == 0 ? ":" : ",", r[i] & leaf.mask[i]);
    }
  }
  return text + in_hex(" states:", enabled_x86_states());
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
