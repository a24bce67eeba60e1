#include "fusebook/harness/kernel_hashes.h"

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/harness/recipe_run.h"

namespace fuse {

void record_kernel(const Plan& plan) {
  RecipeRun* const run = current_run();
  if (run == nullptr || !run->wants_record) return;
  run->record.add_kernel(gpu_part_hash(plan));
}

}  // namespace fuse
