#include "fusebook/cpu/cpu_kernel.h"

#include "fusebook/runtime/parallel.h"

namespace fuse {

void CpuKernel::launch(const Table& table) {
  if (!table.reductions().empty()) {
    launch_phases(table);
  } else {
    const auto parts = table.parts();
    prepare(parts.size());
    parallel_run(int(parts.size()),
                 [&](int part) { run(table, std::size_t(part)); });
  }
  for (const i64 row : table.split_rows()) finish(table, row);
}

// All phases are one region: first the parts that reduce, phase by phase, then
// those that store.
void CpuKernel::launch_phases(const Table& table) {
  const auto phases = table.reductions().phases();
  const std::size_t reducing = table.reductions().parts().size();
  const std::size_t parts = reducing + table.parts().size();
  prepare(parts);
  gate_.reset();
  open(table, 0);
  parallel_run(int(parts), [&](int number) {
    const auto part = std::size_t(number);
    if (part >= reducing) {
      gate_.wait_for(int(phases.size()));
      run(table, part - reducing);
      return;
    }
    std::size_t phase = 0;
    while (i64(part) >= phases[phase].parts.end) ++phase;
    reduce_part(table, phase, part);
  });
}

void CpuKernel::reduce_part(const Table& table, std::size_t phase,
                            std::size_t part) {
  const ReduceTable& all = table.reductions();
  const ReduceTable::Phase& of_part = all.phases()[phase];
  gate_.wait_for(int(phase));
  reduce(table, part, all.parts()[part]);
  const IndexRange parts = of_part.parts;
  if (!gate_.finish(int(parts.end - parts.begin))) return;
  join_results(all, of_part, table.reducing().numbers);
  open(table, phase + 1);
}

// Nobody would end phases without parts.
void CpuKernel::open(const Table& table, std::size_t phase) {
  const auto phases = table.reductions().phases();
  for (; phase < phases.size(); ++phase) {
    const IndexRange parts = phases[phase].parts;
    if (parts.begin < parts.end) break;
    join_results(table.reductions(), phases[phase], table.reducing().numbers);
  }
  gate_.open(int(phase));
}

}  // namespace fuse
