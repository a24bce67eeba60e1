#include "fusebook/harness/ladder.h"

#include "fusebook/bench/benchmark.h"
#include "fusebook/bench/fusion_grid.h"
#include "fusebook/harness/recipe.h"

namespace fuse {

std::int64_t print_rung(const std::string& name,
                        const std::vector<Tensor>& params,
                        const std::function<void()>& step) {
  check_callable(step, "the step");
  for (const Tensor& param : params) check_defined(param, "a parameter");
  step();
  const FusionGrid grid = trace_step(params, step);
  const double time = blocked_autorange(step).mean_us();
  print(name, ": ", grid.launches,
        grid.launches == 1 ? " launch, " : " launches, ", grid.bytes / 1000000,
        " MB, ", measured(name + "_us", time, "us"));
  print_block(to_string(grid) + "\n");
  return grid.launches;
}

}  // namespace fuse
