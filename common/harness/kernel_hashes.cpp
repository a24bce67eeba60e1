#include "fusebook/harness/kernel_hashes.h"

#include "fusebook/codegen/emit_kernel.h"
#include "fusebook/harness/recipe_run.h"
#include "fusebook/support/content_hash.h"

namespace fuse {

void record_kernel(const Plan& plan) {
  RecipeRun* const run = current_run();
  if (run == nullptr || !run->wants_record) return;
  run->record.add_kernel(hex_digits(content_hash(generate_gpu_part(plan))));
}

}  // namespace fuse
