// What a step sends is what the plan says, to the byte.
#include <doctest/doctest.h>

#include "distributed/run_testing.h"
#include "fusebook/distributed/step_traffic.h"
#include "fusebook/optim/all.h"

using namespace run_testing;

namespace {

// Of one chunk, of several with a rest, of two dtypes, and of nothing.
const Model tensors = {{{{3}, DType::float32},
                        {{100, 257}, DType::float32},
                        {{8192}, DType::bfloat16},
                        {{8193, 5}, DType::float32},
                        {{0}, DType::float32}}};

void add_own(ShardedOptimizer& sharded, std::vector<Tensor>& params, int step,
             const PlannedStep& plan) {
  bool has_any = false;
  for (int m = given_ranks->rank(); m < plan.micro_gradients;
       m += given_ranks->size()) {
    tensors.add_gradients(params, step, m);
    if (!plan.adds_up) sharded.add_gradients();
    has_any = true;
  }
  if (plan.adds_up && has_any) sharded.add_gradients();
}

template <class Kind>
void check_planned(const PlannedStep& plan) {
  CAPTURE(plan.micro_gradients);
  CAPTURE(plan.adds_up);
  CAPTURE(plan.gradients_as.has_value());
  auto params = tensors.params();
  Kind opt(params);
  ShardedOptimizer sharded(*given_ranks, opt,
                           {.backend = Backend::interpreted});
  if (plan.gradients_as) sharded.send_gradients_as(plan.gradients_as);
  std::vector<DType> dtypes;
  for (const Tensor& each : params) dtypes.push_back(each.dtype());
  const StepTraffic planned(sharded.shares(), dtypes, given_ranks->size());
  ShardedStep options = {.skip_nonfinite = plan.skips_nonfinite};
  if (plan.clips) options.max_norm = 0.5;
  for (int step = 0; step < 2; ++step) {
    const RankTraffic before = given_ranks->traffic();
    add_own(sharded, params, step, plan);
    sharded.step(options);
    const RankTraffic counted = given_ranks->traffic() - before;
    const RankTraffic expected = planned.of(plan, given_ranks->rank());
    CHECK(counted.gradients == expected.gradients);
    CHECK(counted.parameters == expected.parameters);
    CHECK(counted.sums == expected.sums);
    CHECK(counted.agreement == expected.agreement);
    CHECK(counted.calls == expected.calls);
    CHECK(counted.exchanges == expected.exchanges);
    CHECK(counted.messages == expected.messages);
    CHECK(counted == expected);
  }
}

}  // namespace

TEST_CASE("a step sends what was planned") {
  for (const std::int64_t micro_gradients : {1, 4, 7}) {
    for (const bool adds_up : {false, true}) {
      check_planned<AdamW>(
          {.micro_gradients = micro_gradients, .adds_up = adds_up});
      check_planned<AdamW>({.micro_gradients = micro_gradients,
                            .adds_up = adds_up,
                            .clips = true,
                            .skips_nonfinite = true,
                            .gradients_as = DType::bfloat16});
    }
  }
}

TEST_CASE("so does one whose tensors stay whole") {
  check_planned<LAMB>({.micro_gradients = 7, .clips = true});
  check_planned<LAMB>({.micro_gradients = 7, .adds_up = true});
}

TEST_CASE("the plan for other numbers of ranks") {
  const std::vector<Shareable> sizes = {{8192 * 10, 8192}, {5, 8192}};
  const std::vector<DType> dtypes = {DType::float32, DType::float32};
  const int ranks = 100;
  const StepTraffic planned(make_shares(sizes, ranks), dtypes, ranks);
  std::int64_t own = 0;
  RankTraffic all;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankTraffic sent =
        planned.of({.micro_gradients = 250, .clips = true}, rank);
    own += planned.own_bytes(rank);
    all.gradients += sent.gradients;
    all.parameters += sent.parameters;
    all.sums += sent.sums;
  }
  const std::int64_t whole = 4 * (8192 * 10 + 5);
  CHECK(own == whole);
  // A gradient goes to all owners but its own rank, a parameter to all others.
  CHECK(all.parameters == whole * 99);
  CHECK(all.gradients == 250 * whole - (2 * whole + [&] {
                           std::int64_t first = 0;
                           for (int rank = 0; rank < 50; ++rank) {
                             first += planned.own_bytes(rank);
                           }
                           return first;
                         }()));
  CHECK(all.sums == 11 * 8 * 99);
}
