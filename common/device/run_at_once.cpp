#include "fusebook/device/run_at_once.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/codegen/keep_source.h"
#include "fusebook/device/backend.h"
#include "fusebook/ir/plan.h"
#include "fusebook/runtime/launch_table.h"
#include "fusebook/runtime/parallel.h"

namespace fuse {
namespace {

// A program's structure, ready to be launched over any lists.
struct Prepared {
  std::uint64_t hash;
  Program program;
  Plan plan;
  std::shared_ptr<Kernel> kernel;
  Table table;
};

std::unique_ptr<Prepared> prepare(std::uint64_t hash, const Program& program) {
  const auto never = [](const Origin&) { return false; };
  Plan plan = make_plan(program, never);
  keep_quick_source(plan);
  const Device device = device_of_memory(program.slots()[0].memory);
  auto kernel = backend_of(device).make_quick_kernel(device.index, plan);
  return std::make_unique<Prepared>(
      Prepared{hash, program, std::move(plan), std::move(kernel), Table()});
}

// One per thread, so that threads never wait.
Prepared& prepared(const Program& program) {
  static thread_local std::vector<std::unique_ptr<Prepared>> all;
  const std::uint64_t hash = program.structure_hash();
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const auto& each) {
        return each->hash == hash && each->program.same_structure(program);
      });
  if (known != all.end()) return **known;
  all.push_back(prepare(hash, program));
  return *all.back();
}

}  // namespace

void run_at_once(const Program& program) {
  Prepared& ready = prepared(program);
  bind_table(ready.table, *ready.kernel, ready.plan, program, thread_count());
  ready.kernel->launch(ready.table);
}

}  // namespace fuse
