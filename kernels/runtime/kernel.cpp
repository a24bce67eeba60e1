#include "fusebook/runtime/kernel.h"

#include <algorithm>

namespace fuse {

// Tables keep the addresses they were given, so nothing is freed. Each piece is
// at least twice as large as the last one.
double* Kernel::numbers(std::size_t count) {
  if (numbers_.empty() || numbers_.back().count < count) {
    const std::size_t before = numbers_.empty() ? 0 : numbers_.back().count;
    const std::size_t size = std::max(count, 2 * before);
    numbers_.push_back({std::make_unique<double[]>(size), size});
  }
  return numbers_.back().memory.get();
}

bool bind_table(Table& table, Kernel& kernel, const Plan& plan,
                const Program& program, int threads) {
  return table.bind(plan, program, threads,
                    [&](std::size_t count) { return kernel.numbers(count); });
}

}  // namespace fuse
