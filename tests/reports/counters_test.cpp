#include "fusebook/reports/counters.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/optim/adam.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;

namespace doctest {

template <>
struct StringMaker<Counters> {
  static String convert(const Counters& c) {
    const std::string text =
        "{" + std::to_string(c.launches) + ", " +
        std::to_string(c.compilations) + ", " + std::to_string(c.recompiles) +
        ", " + std::to_string(c.graph_breaks) + ", " +
        std::to_string(c.uploads) + ", " + std::to_string(c.bytes_moved) + "}";
    return text.c_str();
  }
};

}  // namespace doctest

TEST_CASE("counters add up and subtract one by one") {
  Counters sum = {1, 2, 3, 4, 5, 6};
  sum += {10, 20, 30, 40, 50, 60};
  CHECK(sum == Counters{11, 22, 33, 44, 55, 66});
  CHECK(sum - Counters{1, 2, 3, 4, 5, 6} == Counters{10, 20, 30, 40, 50, 60});
  CHECK(Counters{} == Counters{0, 0, 0, 0, 0, 0});
}

TEST_CASE("compiled Adam: one launch, 28 bytes an element, 16 a tensor") {
  for (const std::size_t count : {1U, 10U, 1000U}) {
    const auto params = make_params(mixed_shapes(count), 1);
    Adam adam(params);
    auto step = compile([&] { adam.step(); });
    const std::int64_t bytes = 28 * total_numel(params) + 16 * long(count);
    step();
    CHECK(step.counters() == Counters{1, 1, 0, 0, 1, bytes});
    for (int i = 0; i < 4; ++i) step();
    CHECK(step.counters() == Counters{5, 1, 0, 0, 1, 5 * bytes});
  }
}

TEST_CASE("what amsgrad, float64 and zeroing add") {
  const auto params = make_params(mixed_shapes(9), 1);
  const std::int64_t elements = total_numel(params);
  Adam adam(params, {.amsgrad = true});
  auto step = compile([&] { adam.step(); });
  step();
  CHECK(step.counters().bytes_moved == 36 * elements + 16 * 9);

  const auto doubles = make_params(mixed_shapes(9), 1, DType::float64);
  Adam wide(doubles);
  auto wide_step = compile([&] { wide.step(); });
  wide_step();
  CHECK(wide_step.counters().bytes_moved == 56 * elements + 16 * 9);

  const auto others = make_params(mixed_shapes(9), 1);
  Adam zeroing(others);
  auto zeroing_step = compile([&] {
    zeroing.step();
    zeroing.zero_grad(false);
  });
  zeroing_step();
  CHECK(zeroing_step.counters() ==
        Counters{1, 1, 0, 0, 1, 32 * elements + 16 * 9});
}

TEST_CASE("a table is built again when lists or threads change, only then") {
  const auto params = make_params(mixed_shapes(9), 1);
  Adam adam(params);
  auto step = compile([&] { adam.step(); });
  step();
  step();
  CHECK(step.counters().uploads == 1);
  Tensor param = params[0];
  param.set_grad(param.grad().clone());
  step();
  step();
  CHECK(step.counters().uploads == 2);
  adam.param_groups[0]["lr"] = tensor(0.5);
  step();  // another kernel with a table of its own
  CHECK(step.counters().uploads == 3);
  adam.param_groups[0]["lr"].assign(0.25);
  step();
  CHECK(step.counters().uploads == 3);
  set_thread_count(3);
  step();
  set_thread_count(0);
  CHECK(step.counters().uploads == 4);
  CHECK(step.counters().launches == 7);
}

TEST_CASE("eager Adam launches seven times, or seven times a tensor") {
  for (const std::size_t count : {1U, 10U, 1000U}) {
    Adam lists(make_params(mixed_shapes(count), 1));
    lists.step();
    const Counters cost = counters_of([&] { lists.step(); });
    CHECK(cost.launches == 7);
    CHECK(cost.compilations == 0);
    CHECK(cost.recompiles == 0);
    CHECK(cost.graph_breaks == 0);
  }
  for (const std::size_t count : {1U, 10U}) {
    Adam singles(make_params(mixed_shapes(count), 1), {.foreach = false});
    singles.step();
    CHECK(counters_of([&] { singles.step(); }).launches == 7 * long(count));
  }
}

TEST_CASE("compiled, one tensor after the other is still one launch") {
  const auto params = make_params(mixed_shapes(10), 1);
  Adam singles(params, {.foreach = false});
  auto step = compile([&] { singles.step(); });
  step();
  CHECK(step.counters() ==
        Counters{1, 1, 0, 0, 1, 28 * total_numel(params) + 160});
}

TEST_CASE("the bytes of eager operations are those of their lists") {
  const auto params = make_params(mixed_shapes(9), 1);
  const auto others = make_params(mixed_shapes(9), 2);
  const std::int64_t elements = total_numel(params);
  CHECK(counters_of([&] { foreach_mul_(params, 2.0); }).bytes_moved ==
        8 * elements);
  CHECK(counters_of([&] { foreach_add_(params, others); }).bytes_moved ==
        12 * elements);
  CHECK(counters_of([&] { foreach_zero_(params); }).bytes_moved ==
        4 * elements);
  CHECK(counters_of([&] {
          static_cast<void>(foreach_sqrt(params));
        }).bytes_moved == 8 * elements);
  const TensorList steps = TensorList::per_tensor(scalars(9));
  const Counters counting = counters_of([&] { foreach_add_(steps, 1.0); });
  CHECK(counting.launches == 0);
  CHECK(counting.bytes_moved == 16 * 9);
}

TEST_CASE("the process sums over functions, eager operations and threads") {
  const TensorList params(make_params({{5}}, 1));
  const TensorList others(make_params({{6}}, 1));
  auto first = compile([&] { foreach_mul_(params, 2.0); });
  auto second = compile([&] {
    foreach_add_(others, 1.0);
    static_cast<void>(others[0].to_vector());
    foreach_neg_(others);
  });
  const Counters cost = counters_of([&] {
    first();
    second();
    std::thread([&] { first(); }).join();
    foreach_abs_(params);
  });
  Counters expected = first.counters();
  expected += second.counters();
  CHECK(first.counters() == Counters{2, 1, 0, 0, 1, 80});
  CHECK(second.counters() == Counters{2, 2, 0, 1, 2, 96});
  expected += {.launches = 1, .uploads = 1, .bytes_moved = 40};
  CHECK(cost == expected);
}
