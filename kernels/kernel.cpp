#include "kernel.h"

#include "parallel.h"

namespace fuse {

void CpuKernel::launch(const Table& table) const {
  struct Context {
    const CpuKernel* kernel;
    const Table* table;
  } context{this, &table};
  const auto parts = table.parts();
  parallel_run(
      int(parts.size()),
      [](void* erased, int part) {
        const auto& c = *static_cast<const Context*>(erased);
        c.kernel->run(*c.table, c.table->parts()[std::size_t(part)]);
      },
      &context);
  for (const i64 row : table.split_rows()) finish(table, row);
}

}  // namespace fuse
