#include "fusebook/harness/ladder.h"

#include "fusebook/bench/benchmark.h"
#include "fusebook/bench/fusion_grid.h"
#include "fusebook/harness/recipe.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

void print_rung(const std::string& name, const FusionGrid& grid, double us) {
  print(name, ": ", grid.launches,
        grid.launches == 1 ? " launch, " : " launches, ",
        quantity_text(double(grid.bytes) * 1e-6, "MB"), ", ",
        measured(name + "_us", us, "us"));
  print_block(to_string(grid) + "\n");
}

}  // namespace

std::vector<RungCost> print_ladder(const std::vector<Rung>& rungs) {
  std::vector<FusionGrid> grids;
  std::vector<std::function<void()>> steps;
  for (const Rung& rung : rungs) {
    check_callable(rung.step, "the step");
    for (const Tensor& param : rung.params) check_defined(param, "a parameter");
    rung.step();
    grids.push_back(trace_step(rung.params, rung.step));
    steps.push_back(rung.step);
  }
  const std::vector<Measurement> times = interleaved(steps);
  std::vector<RungCost> costs;
  for (std::size_t i = 0; i < rungs.size(); ++i) {
    costs.push_back({grids[i].launches, times[i].median_us()});
    print_rung(rungs[i].name, grids[i], costs[i].us);
  }
  return costs;
}

}  // namespace fuse
