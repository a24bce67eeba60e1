#include "fusebook/jit/cpu_levels.h"

#include <algorithm>

#include "fusebook/jit/x86_registers.h"

namespace fuse {
namespace {

#if defined(__x86_64__) || defined(__i386__)

// A feature: a bit of a register that cpuid fills.
struct Bit {
  unsigned number;
  unsigned place;  // of eax, ebx, ecx and edx
  unsigned bit;
};

constexpr unsigned basic = 0x1;
constexpr unsigned extended = 0x7;
constexpr unsigned amd = 0x80000001;

bool has(const Bit& feature) {
  const unsigned largest = ask_x86(feature.number & 0x80000000U, 0)[0];
  if (feature.number > largest) return false;
  const X86Registers r = ask_x86(feature.number, 0);
  return ((r[feature.place] >> feature.bit) & 1U) != 0;
}

// What a level has beyond the one below it, and the register states that it
// needs. Source: "x86-64 psABI", table "Micro-Architecture Levels".
struct Level {
  const char* name;
  unsigned long long states;
  std::vector<Bit> features;
};

const std::vector<Level>& levels() {
  static const auto* const all = new std::vector<Level>{
      {"x86-64", 0, {}},
      {"x86-64-v2",
       0,
       {{basic, 2, 13},    // CMPXCHG16B
        {amd, 2, 0},       // LAHF, SAHF
        {basic, 2, 23},    // POPCNT
        {basic, 2, 0},     // SSE3
        {basic, 2, 9},     // SSSE3
        {basic, 2, 19},    // SSE4.1
        {basic, 2, 20}}},  // SSE4.2
      {"x86-64-v3",
       0x6,                // SSE and AVX
       {{basic, 2, 28},    // AVX
        {extended, 1, 5},  // AVX2
        {extended, 1, 3},  // BMI1
        {extended, 1, 8},  // BMI2
        {basic, 2, 29},    // F16C
        {basic, 2, 12},    // FMA
        {amd, 2, 5},       // LZCNT
        {basic, 2, 22}}},  // MOVBE
      {"x86-64-v4",
       0xe6,                  // besides: masks, and all of AVX-512
       {{extended, 1, 16},    // AVX512F
        {extended, 1, 30},    // AVX512BW
        {extended, 1, 28},    // AVX512CD
        {extended, 1, 17},    // AVX512DQ
        {extended, 1, 31}}},  // AVX512VL
  };
  return *all;
}

bool runs(const Level& level) {
  return (enabled_x86_states() & level.states) == level.states &&
         std::all_of(level.features.begin(), level.features.end(), has);
}

std::vector<std::string> find_runnable() {
  std::vector<std::string> found;
  for (const Level& level : levels()) {
    if (!runs(level)) break;
    found.insert(found.begin(), level.name);
  }
  return found;
}

std::vector<std::string> name_all() {
  std::vector<std::string> names;
  for (const Level& level : levels()) names.emplace_back(level.name);
  return names;
}

#else

std::vector<std::string> name_all() {
#if defined(__aarch64__)
  return {"armv8-a"};
#else
  return {};
#endif
}

std::vector<std::string> find_runnable() { return name_all(); }

#endif

}  // namespace

// Never destroyed: they may be used while the process exits.
const std::vector<std::string>& cpu_levels() {
  static const auto* const names = new std::vector<std::string>(name_all());
  return *names;
}

const std::vector<std::string>& levels_run_here() {
  static const auto* const names =
      new std::vector<std::string>(find_runnable());
  return *names;
}

}  // namespace fuse
