#include "fusebook/cpu/cpu_kernel.h"

#include "fusebook/runtime/parallel.h"

namespace fuse {

void CpuKernel::launch(const Table& table) {
  struct Context {
    CpuKernel* kernel;
    const Table* table;
  } context{this, &table};
  const auto parts = table.parts();
  prepare(parts.size());
  parallel_run(
      int(parts.size()),
      [](void* erased, int part) {
        const auto& c = *static_cast<const Context*>(erased);
        c.kernel->run(*c.table, std::size_t(part));
      },
      &context);
  for (const i64 row : table.split_rows()) finish(table, row);
}

}  // namespace fuse
