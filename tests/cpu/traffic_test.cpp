#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/cpu/traffic.h"
#include "fusebook/optim/adam.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace {

using Elements = TrafficCounter::Elements;

// Sizes around the tiles of the interpreter, and one for several threads.
std::vector<Shape> shapes() {
  return {{1}, {511}, {512}, {513}, {3, 500}, {}, {100003}};
}

struct Sums {
  long long loads = 0;
  long long stores = 0;
};

Sums sum(const std::map<const void*, Elements>& tensors) {
  Sums sums;
  for (const auto& [address, moved] : tensors) {
    sums.loads += moved.loads;
    sums.stores += moved.stores;
  }
  return sums;
}

void check(const TrafficCounter& counter, const Tensor& tensor, bool loaded,
           bool stored) {
  const Elements moved = counter.tensors().at(tensor.raw_data());
  CHECK(moved.loads == (loaded ? tensor.numel() : 0));
  CHECK(moved.stores == (stored ? tensor.numel() : 0));
}

}  // namespace

TEST_CASE("a step of Adam loads four arrays and stores three, once each") {
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const auto params = make_params(shapes(), 1);
    Adam adam(params, {.weight_decay = 0.01});
    auto step =
        compile([&] { adam.step(); }, {.backend = Backend::interpreted});
    step();
    const TrafficCounter counter;
    step();
    for (const Tensor& param : params) {
      CAPTURE(param.numel());
      check(counter, param, true, true);
      check(counter, param.grad(), true, false);
      check(counter, adam.state(param, "exp_avg"), true, true);
      check(counter, adam.state(param, "exp_avg_sq"), true, true);
    }
    const Sums sums = sum(counter.tensors());
    CHECK(sums.loads == 4 * total_numel(params));
    CHECK(sums.stores == 3 * total_numel(params));
  }
  set_thread_count(0);
}

TEST_CASE("in functional form, too, and nothing else is touched") {
  const auto params = make_params(shapes(), 1);
  std::vector<Tensor> grads;
  std::vector<Tensor> averages;
  for (const Tensor& param : params) {
    grads.push_back(param.grad());
    averages.push_back(zeros_like(param));
  }
  auto step = compile(
      [&] {
        const TensorList next = foreach_lerp(averages, grads, 0.1);
        foreach_copy_(params, foreach_sub(params, foreach_mul(next, 0.01)));
        foreach_copy_(averages, next);
      },
      {.backend = Backend::interpreted});
  step();
  const TrafficCounter counter;
  step();
  CHECK(counter.tensors().size() == 3 * params.size());
  for (std::size_t i = 0; i < params.size(); ++i) {
    check(counter, params[i], true, true);
    check(counter, grads[i], true, false);
    check(counter, averages[i], true, true);
  }
}

// Unfused, the counter must see the difference: seven passes, 18 arrays.
TEST_CASE("list by list a step moves 18 arrays") {
  const auto params = make_params(shapes(), 1);
  Adam adam(params);
  adam.step();
  const TrafficCounter counter;
  adam.step();
  const Sums sums = sum(counter.tensors());
  CHECK(sums.loads + sums.stores == 18 * total_numel(params));
}

TEST_CASE("nothing is counted without a counter") {
  const auto params = make_params(shapes(), 1);
  Adam adam(params);
  adam.step();
  {
    const TrafficCounter counter;
    CHECK(counter.tensors().empty());
  }
  CHECK(TrafficCounter::current() == nullptr);
}
