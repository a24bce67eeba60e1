#include "fusebook/ops/loops.h"

#include <array>
#include <cstring>
#include <span>

namespace fuse {

namespace baseline {
extern const LoopTable table;
}
#ifdef FUSE_X86_LEVELS
namespace x86_64_v3 {
extern const LoopTable table;
}
namespace x86_64_v4 {
extern const LoopTable table;
}
#endif

const LoopTable* loops_for(const char* instruction_set) {
  if (std::strcmp(instruction_set, "baseline") == 0) return &baseline::table;
#ifdef FUSE_X86_LEVELS
  if (std::strcmp(instruction_set, "x86-64-v3") == 0) {
    const bool present = __builtin_cpu_supports("avx2") != 0 &&
                         __builtin_cpu_supports("fma") != 0 &&
                         __builtin_cpu_supports("bmi2") != 0;
    return present ? &x86_64_v3::table : nullptr;
  }
  if (std::strcmp(instruction_set, "x86-64-v4") == 0) {
    const bool present = __builtin_cpu_supports("avx512f") != 0 &&
                         __builtin_cpu_supports("avx512vl") != 0 &&
                         __builtin_cpu_supports("avx512bw") != 0 &&
                         __builtin_cpu_supports("avx512dq") != 0 &&
                         __builtin_cpu_supports("avx512cd") != 0;
    return present ? &x86_64_v4::table : nullptr;
  }
#endif
  return nullptr;
}

const LoopTable& loops() {
  static const LoopTable& best = []() -> const LoopTable& {
    for (const char* set : {"x86-64-v4", "x86-64-v3"}) {
      if (const LoopTable* table = loops_for(set)) return *table;
    }
    return baseline::table;
  }();
  return best;
}

double apply_to_numbers(OpCode op, std::span<const double> operands) {
  std::array<const void*, 4> in{};
  for (std::size_t k = 0; k < operands.size(); ++k) in[k] = &operands[k];
  double result = 0;
  const LoopRow& row =
      loops().ops[std::size_t(DType::float64)][std::size_t(op)];
  row[(1U << operands.size()) - 1](&result, in.data(), 1);
  return result;
}

}  // namespace fuse
