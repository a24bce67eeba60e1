#include "fusebook/cpu/cpu_kernel.h"

#include "fusebook/runtime/parallel.h"

namespace fuse {

void CpuKernel::launch(const Table& table) {
  const auto parts = table.parts();
  prepare(parts.size());
  parallel_run(int(parts.size()),
               [&](int part) { run(table, std::size_t(part)); });
  for (const i64 row : table.split_rows()) finish(table, row);
}

}  // namespace fuse
