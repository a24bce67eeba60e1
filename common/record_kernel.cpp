#include "record_kernel.h"

#include "codegen.h"
#include "content_hash.h"
#include "recipe_run.h"

namespace fuse {

void record_kernel(const Plan& plan) {
  RecipeRun* const run = current_run();
  if (run == nullptr || !run->wants_record) return;
  run->record.add_kernel(hex_digits(content_hash(generate_gpu_part(plan))));
}

}  // namespace fuse
