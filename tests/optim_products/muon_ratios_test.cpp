// The ratios of Muon's rates, which depend on shapes alone.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim_products/muon.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

using Params = std::vector<Tensor>;

TEST_CASE("ratios of rates stay where they are, until their option changes") {
  const Params params = make_params({{8, 2}, {2, 8}}, 4);
  MuonOptions options{.lr = 0.5, .weight_decay = 0.0, .ns_steps = 0};
  Muon muon(params, options);
  auto step = compile([&] { muon.step(); });
  for (int n = 0; n < 2; ++n) step();
  const Counters before = step.counters();
  for (int n = 0; n < 3; ++n) step();
  CHECK((step.counters() - before).uploads == 0);
  const Params other = copies(params);
  muon.param_groups[0].options.adjust_lr_fn = "match_rms_adamw";
  muon.param_groups[0].options.momentum = 0.0;
  step();
  const auto moved = [&](std::size_t p) {
    return std::abs(other[p].to_vector()[0] - params[p].to_vector()[0]);
  };
  // Both have sixteen elements, and the same ratio now.
  const auto grad = [&](std::size_t p) {
    double squares = 0;
    for (const double g : params[p].grad().to_vector()) squares += g * g;
    return std::abs(params[p].grad().to_vector()[0]) / std::sqrt(squares);
  };
  for (const std::size_t p : {0, 1}) {
    CHECK(moved(p) ==
          doctest::Approx(0.5 * 0.2 * std::sqrt(8.0) * grad(p)).epsilon(1e-4));
  }
}
