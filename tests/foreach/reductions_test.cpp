#include "fusebook/foreach/reductions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/cuda_sim/gpu_sim_block.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "support/every_mode.h"
#include "support/reduction_order.h"
#include "support/sim_device.h"
#include "support/tested_device.h"
#include "support/testing.h"
#include "support/thread_count.h"

using namespace fuse;
using namespace testing;
using namespace reduction_order;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double not_a_number = std::numeric_limits<double>::quiet_NaN();

// ---- what reductions give, by plain loops ----------------------------------

using Values = std::vector<std::vector<double>>;

Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& tensor : list) {
    values.push_back(tensor.cpu().contiguous().to_vector());
  }
  return values;
}

struct Kind {
  std::string name;
  std::function<TensorList(const TensorList&)> each;
  std::function<double(double)> term;
  Join join;
  double first;
  std::function<double(double)> last;
};

double same(double x) { return x; }

std::vector<Kind> kinds() {
  return {
      {"sum", [](const TensorList& x) { return foreach_sum(x); }, same, add, 0,
       same},
      {"amax", [](const TensorList& x) { return foreach_amax(x); }, same,
       larger, -infinity, same},
      {"norm 1", [](const TensorList& x) { return foreach_norm(x, 1); },
       [](double x) { return std::abs(x); }, add, 0, same},
      {"norm 2", [](const TensorList& x) { return foreach_norm(x); },
       [](double x) { return x * x; }, add, 0,
       [](double x) { return std::sqrt(x); }},
      {"norm inf",
       [](const TensorList& x) { return foreach_norm(x, infinity); },
       [](double x) { return std::abs(x); }, larger, -infinity, same},
  };
}

std::vector<double> terms(const Kind& kind, std::vector<double> values) {
  for (double& value : values) value = kind.term(value);
  return values;
}

std::vector<double> by_hand(const Kind& kind, const TensorList& list) {
  std::vector<double> results;
  for (const auto& values : values_of(list)) {
    results.push_back(
        kind.last(join_elements(terms(kind, values), kind.join, kind.first)));
  }
  return results;
}

double total_by_hand(const Kind& kind, const TensorList& list) {
  std::vector<double> results;
  for (const auto& values : values_of(list)) {
    results.push_back(
        join_elements(terms(kind, values), kind.join, kind.first));
  }
  return kind.last(join_numbers(results, kind.join, kind.first));
}

std::vector<double> numbers_of(const TensorList& list) {
  std::vector<double> numbers;
  for (const Tensor& tensor : list) numbers.push_back(tensor.item());
  return numbers;
}

bool equal(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return same_value(x, y); });
}

// ---- lists -----------------------------------------------------------------

const std::vector<DType> dtypes = {DType::float32, DType::float64,
                                   DType::float16, DType::bfloat16};

Tensor random_tensor(const Shape& shape, DType dtype, Random& random) {
  Tensor wide = zeros(shape, DType::float64);
  for (std::int64_t i = 0; i < wide.numel(); ++i) {
    wide.data<double>()[i] =
        random.uniform(-1, 2) * std::pow(10, random.below(4));
  }
  return wide.to(dtype);
}

TensorList random_list(const std::vector<Shape>& shapes, DType dtype,
                       Random& random) {
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(random_tensor(shape, dtype, random));
  }
  return {std::move(tensors), "x"};
}

Tensor full_of_ones(const Shape& shape) { return full(shape, 1.0); }

const std::vector<Shape> filled = {{3},    {1},    {2, 3, 4}, {},
                                   {8192}, {8193}, {255, 99}, {40000}};
const std::vector<Shape> with_empty = {{3}, {0}, {700}, {4, 0, 2}};

}  // namespace

TEST_CASE("reductions of tensors have the bits of the documented order") {
  in_every_mode([](const Run& run) {
    Random random(1);
    for (const DType dtype : dtypes) {
      const TensorList list = random_list(filled, dtype, random);
      for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        CAPTURE(name_of(dtype));
        const auto expected = by_hand(kind, list);
        for (const int threads : {1, 2, 3, 8}) {
          const Threads scope(threads);
          TensorList result;
          run([&] { result = kind.each(list); });
          CHECK(result.impl()->dtype == DType::float64);
          CHECK(equal(numbers_of(result), expected));
        }
      }
    }
  });
}

TEST_CASE("sums of tensors without elements are 0") {
  in_every_mode([](const Run& run) {
    Random random(2);
    const TensorList list = random_list(with_empty, DType::float32, random);
    TensorList sums;
    TensorList norms;
    run([&] {
      sums = foreach_sum(list);
      norms = foreach_norm(list);
    });
    CHECK(equal(numbers_of(sums), by_hand(kinds()[0], list)));
    CHECK(equal(numbers_of(norms), by_hand(kinds()[3], list)));
    CHECK(norms[1].item() == 0);
  });
}

TEST_CASE("norms of lists have the bits of the documented order") {
  in_every_mode([](const Run& run) {
    Random random(3);
    for (const DType dtype : dtypes) {
      const TensorList list = random_list(filled, dtype, random);
      const auto of_kind = kinds();
      for (const int threads : {1, 3}) {
        const Threads scope(threads);
        Scalar one(0.0);
        Scalar two(0.0);
        Scalar most(0.0);
        Scalar finite(0.0);
        run([&] {
          one = total_norm(list, 1);
          two = total_norm(list);
          most = total_norm(list, infinity);
          finite = all_finite(list);
        });
        CHECK(same_value(one.value(), total_by_hand(of_kind[2], list)));
        CHECK(same_value(two.value(), total_by_hand(of_kind[3], list)));
        CHECK(same_value(most.value(), total_by_hand(of_kind[4], list)));
        CHECK(finite.value() == 1);
      }
    }
  });
}

TEST_CASE("sums are as close as float64 allows") {
  Random random(4);
  const TensorList list = random_list({{300000}}, DType::float32, random);
  long double exact = 0;
  long double size = 0;
  const Values values = values_of(list);
  for (const double x : values[0]) {
    exact += static_cast<long double>(x);
    size += std::abs(static_cast<long double>(x));
  }
  const double sum = foreach_sum(list)[0].item();
  // Each number takes part in at most 32 + 8 + 8 additions.
  CHECK(std::abs(static_cast<long double>(sum) - exact) <=
        48 * 0x1p-53L * size);
}

TEST_CASE("NaN and infinity arrive where they should") {
  in_every_mode([](const Run& run) {
    const TensorList list = {
        tensor({1, not_a_number, 3}), tensor({1, infinity, -infinity}),
        tensor({-infinity, -1, -2}), tensor({-infinity, -infinity, 5})};
    std::array<TensorList, 3> results;
    Scalar finite(0.0);
    run([&] {
      results = {foreach_sum(list), foreach_amax(list), foreach_norm(list)};
      finite = all_finite(list);
    });
    CHECK(equal(numbers_of(results[0]),
                {not_a_number, not_a_number, -infinity, -infinity}));
    CHECK(equal(numbers_of(results[1]), {not_a_number, infinity, -1, 5}));
    CHECK(equal(numbers_of(results[2]),
                {not_a_number, infinity, infinity, infinity}));
    CHECK(finite.value() == 0);
  });
}

TEST_CASE("squares of large elements do not overflow") {
  const TensorList list = {tensor({3e38, 4e38 / 2})};
  CHECK(std::isfinite(foreach_norm(list)[0].item()));
  CHECK(all_finite(list).value() == 1);
}

TEST_CASE("the magnitude of the least whole number of 16 bits is whole") {
  in_every_mode([](const Run& run) {
    const TensorList list = {tensor({-32768, 5, -7}).to(DType::int16)};
    TensorList sums, largest;
    run([&] {
      sums = foreach_norm(list, 1);
      largest = foreach_norm(list, infinity);
    });
    CHECK(equal(numbers_of(sums), {32780}));
    CHECK(equal(numbers_of(largest), {32768}));
  });
  const TensorList list = {tensor({-32768, 5, -7}).to(DType::int16)};
  CHECK(total_norm(list, 1).value() == 32780);
  CHECK(total_norm(list, infinity).value() == 32768);
}

TEST_CASE("what follows uses the numbers in the same launch") {
  in_every_mode([](const Run& run) {
    Random random(5);
    const TensorList list =
        random_list({{3}, {20000}, {7, 5}}, DType::float32, random);
    const Values before = values_of(list);
    const double norm = total_by_hand(kinds()[3], list);
    const auto sums = by_hand(kinds()[0], list);
    run([&] {
      const Scalar factor = Scalar(2.0) / (total_norm(list) + Scalar(1e-6));
      const TensorList shifts = foreach_sum(list);
      foreach_mul_(list, factor);
      foreach_add_(list, shifts);
    });
    const double factor = 2.0 / (norm + 1e-6);
    const Values after = values_of(list);
    bool all = true;
    for (std::size_t e = 0; e < before.size(); ++e) {
      for (std::size_t i = 0; i < before[e].size(); ++i) {
        const float scaled = float(before[e][i]) * float(factor);
        all = all && after[e][i] == double(scaled + float(sums[e]));
      }
    }
    CHECK(all);
  });
}

TEST_CASE("reductions of what was reduced are further phases") {
  in_every_mode([](const Run& run) {
    Random random(6);
    const TensorList list = random_list({{9000}, {5}}, DType::float64, random);
    TensorList copy({list[0].clone(), list[1].clone()});
    Scalar last(0.0);
    run([&] {
      const TensorList unit = foreach_div(list, foreach_norm(list));
      last = total_norm(foreach_sub(unit, total_norm(unit, 1)), infinity);
      foreach_copy_(copy, unit);
    });
    const auto norms = by_hand(kinds()[3], list);
    Values unit = values_of(list);
    for (std::size_t e = 0; e < unit.size(); ++e) {
      for (double& x : unit[e]) x /= norms[e];
    }
    CHECK(values_of(copy) == unit);
    const double sum = total_by_hand(kinds()[2], copy);
    double largest = 0;
    for (const auto& values : unit) {
      for (const double x : values)
        largest = std::max(largest, std::abs(x - sum));
    }
    CHECK(last.value() == largest);
  });
}

TEST_CASE("views with strides give the bits of their contiguous copies") {
  in_every_mode([](const Run& run) {
    Random random(7);
    for (const DType dtype : dtypes) {
      const Tensor wide = random_tensor({130, 90}, dtype, random);
      const Tensor deep = random_tensor({7, 40, 50}, dtype, random);
      const TensorList views = {wide.t(), wide.narrow(1, 3, 70),
                                deep.permute({2, 0, 1}), deep.narrow(0, 2, 4)};
      const TensorList copies = {views[0].contiguous(), views[1].contiguous(),
                                 views[2].contiguous(), views[3].contiguous()};
      for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        TensorList result;
        run([&] { result = kind.each(views); });
        CHECK(equal(numbers_of(result), by_hand(kind, copies)));
      }
    }
  });
}

TEST_CASE("elements that depend on no list are reduced, too") {
  in_every_mode([](const Run& run) {
    const TensorList list = {zeros({3, 4}), zeros({9000})};
    TensorList sums;
    run([&] {
      const TensorList made = foreach_neg(list);
      foreach_fill_(made, 0.5);
      sums = foreach_sum(made);
    });
    CHECK(equal(numbers_of(sums), {6, 4500}));
  });
}

TEST_CASE("other norms go through powers") {
  in_every_mode([](const Run& run) {
    const TensorList list = {tensor({1, -2, 3}), tensor({-4})};
    TensorList norms;
    Scalar total(0.0);
    run([&] {
      norms = foreach_norm(list, 3);
      total = total_norm(list, 3);
    });
    CHECK(norms[0].item() == doctest::Approx(std::pow(36, 1.0 / 3)));
    CHECK(norms[1].item() == doctest::Approx(4));
    CHECK(total.value() == doctest::Approx(std::pow(100, 1.0 / 3)));
  });
}

TEST_CASE("empty lists have empty reductions") {
  in_every_mode([](const Run& run) {
    const TensorList none;
    TensorList sums;
    Scalar norm(5.0);
    Scalar finite(5.0);
    run([&] {
      sums = foreach_sum(none);
      norm = total_norm(none);
      finite = all_finite(none);
    });
    CHECK(sums.size() == 0);
    CHECK(norm.value() == 0);
    CHECK(finite.value() == 1);
  });
}

TEST_CASE("a launch has a phase for each reduction that another waits for") {
  const TensorList list = {full_of_ones({1000}), full_of_ones({20, 30})};
  auto step = compile([&] { foreach_div_(list, foreach_norm(list)); },
                      {.fullgraph = true});
  for (int i = 0; i < 3; ++i) step();
  CHECK(step.counters().launches == 3);
  CHECK(step.counters().reduction_phases == 3);
  CHECK(step.counters().compilations == 1);
  // Read to reduce, read again and stored; and each norm stored and read.
  CHECK(step.counters().bytes_moved == 3 * (1600 * 12 + 2 * 16));
  assert_fused(step);
  CHECK(step.report().find(
            "2 tensors in 2 phases\n"
            "  phase 1: 1 loop, 6416 bytes, reduced for what follows\n") !=
        std::string::npos);
  CHECK(step.report().find("  phase 2: 1 loop, 12816 bytes\n") !=
        std::string::npos);
  CHECK(
      step.summary().starts_with("phase 1\n"
                                 "once per launch:   nothing\n"
                                 "once per tensor:   sum_of_squares\n"));

  const Counters eager = counters_of([&] { foreach_div_(list, 2.0); });
  CHECK(eager.reduction_phases == 0);
  const Counters sum = counters_of([&] { (void)foreach_sum(list); });
  CHECK(sum.launches == 1);
  CHECK(sum.reduction_phases == 1);
}

TEST_CASE("reductions of the same pass over memory share it") {
  const TensorList list = {full_of_ones({1000})};
  auto step = compile([&] {
    const Scalar norm = total_norm(list);
    const Scalar finite = all_finite(list);
    const Scalar again = total_norm(list);
    foreach_mul_(list, norm * finite * again);
  });
  step();
  CHECK(step.counters().reduction_phases == 1);
  CHECK(step.counters().bytes_moved == 1000 * 12);
}

TEST_CASE("a number is known after the call, and asking before breaks it") {
  const TensorList list = {tensor({3, 4})};
  Scalar norm(0.0);
  auto step = compile([&] {
    norm = total_norm(list);
    foreach_mul_(list, 2.0);
  });
  step();
  CHECK(norm.value() == 5);
  step();
  CHECK(norm.value() == 10);
  CHECK(step.counters().graph_breaks == 0);

  double seen = 0;
  auto asks = compile([&] {
    seen = total_norm(list).value();
    foreach_mul_(list, 0.5);
  });
  asks();
  CHECK(seen == 20);
  CHECK(asks.counters().graph_breaks == 1);
  CHECK(list[0].to_vector() == std::vector<double>{6, 8});
}

TEST_CASE("a number of one recording is an argument of the next") {
  const TensorList list = {tensor({3, 4})};
  const Scalar norm = total_norm(list);
  auto step = compile([&] { foreach_mul_(list, norm); }, {.fullgraph = true});
  step();
  CHECK(list[0].to_vector() == std::vector<double>{15, 20});
  foreach_div_(list, norm);
  CHECK(list[0].to_vector() == std::vector<double>{3, 4});
  CHECK((norm + Scalar(1.0)).value() == 6);
}

TEST_CASE("what is reduced may be another list in each call") {
  auto sums_of = [](TensorList& sums, const TensorList& list) {
    return [&] { sums = foreach_sum(list); };
  };
  TensorList list = {full_of_ones({10}), full_of_ones({3})};
  TensorList sums;
  auto step = compile(sums_of(sums, list));
  step();
  CHECK(equal(numbers_of(sums), {10, 3}));
  list = TensorList({full({10}, 2.0), full({3}, 5.0)});
  step();
  CHECK(equal(numbers_of(sums), {20, 15}));
  list = TensorList({full({70000}, 2.0), full({1}, 5.0), full_of_ones({2})});
  step();
  CHECK(equal(numbers_of(sums), {140000, 5, 2}));
  list = TensorList({full_of_ones({10}), full_of_ones({3})});
  step();
  CHECK(equal(numbers_of(sums), {10, 3}));
  CHECK(step.counters().compilations == 1);
}

TEST_CASE("where lists share memory, later launches get the numbers") {
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    Tensor all = zeros({6});
    const TensorList whole = {all};
    const TensorList halves = {all.narrow(0, 0, 3), all.narrow(0, 3, 3)};
    auto step = compile(
        [&] {
          const Scalar norm = total_norm(whole) + Scalar(1.0);
          const TensorList sums = foreach_sum(halves);
          foreach_add_(whole, 1.0);
          foreach_mul_(halves, norm);
          foreach_add_(halves, sums);
        },
        {.backend = backend});
    for (int i = 0; i < 2; ++i) {
      all.copy_(tensor({3, 0, 0, 0, 4, 0}));
      step();
      CHECK(all.to_vector() == std::vector<double>{27, 9, 9, 10, 34, 10});
    }
    CHECK(step.counters().graph_breaks == 4);
    CHECK(step.counters().compilations == 3);
  }
}

TEST_CASE("reductions run on lists of a GPU") {
  Random random(8);
  TensorList host = random_list(filled, DType::float32, random);
  std::vector<Tensor> moved;
  for (const Tensor& tensor : host) moved.push_back(tensor.to(tested_device()));
  const TensorList list(std::move(moved));
  for (const Kind& kind : kinds()) {
    CAPTURE(kind.name);
    CHECK(equal(numbers_of(kind.each(list)), by_hand(kind, host)));
  }
  auto step =
      compile([&] { foreach_mul_(list, Scalar(1.0) / total_norm(list)); },
              {.fullgraph = true});
  const double norm = total_by_hand(kinds()[3], host);
  step();
  CHECK(values_of(list)[1][0] ==
        double(float(values_of(host)[1][0]) * float(1.0 / norm)));
  CHECK(step.counters().launches == 1);
  CHECK(step.counters().reduction_phases == 1);
}

namespace {

// Tensors on a GPU, and a number there that goes into them.
struct Scaled {
  Tensor factor = full({}, 2).to(tested_device());
  TensorList numbers = TensorList::per_tensor({factor});
  Tensor few = tensor({3, -4, 0.5}).to(tested_device());
  Tensor many = full({9000}, 0.25).to(tested_device());
  TensorList list{few, many};
};

}  // namespace

TEST_CASE("a number is overwritten after all tensors have read it") {
  Scaled scaled;
  auto step = compile(
      [&] {
        foreach_mul_(scaled.list, Scalar(scaled.factor));
        foreach_fill_(scaled.numbers, total_norm(scaled.list));
      },
      {.fullgraph = true});
  const double least = std::numeric_limits<float>::denorm_min();
  for (const double factor :
       {0.5, -0.0, infinity, -infinity, not_a_number, least}) {
    CAPTURE(factor);
    scaled.factor.fill_(factor);
    scaled.few.copy_(tensor({3, -4, 0.5}).to(tested_device()));
    scaled.many.fill_(0.25);
    step();
    CHECK(equal(values_of(scaled.list)[0],
                {float(3 * factor), float(-4 * factor), float(0.5 * factor)}));
    CHECK(equal(values_of(scaled.list)[1],
                std::vector<double>(9000, float(0.25 * factor))));
    double squares = 0;
    for (const auto& values : values_of(scaled.list)) {
      for (const double x : values) squares += x * x;
    }
    CHECK(equal({scaled.factor.item()}, {float(std::sqrt(squares))}));
  }
  CHECK(step.counters().graph_breaks == 0);
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 6);
}

namespace {

TensorList clones(const TensorList& list) {
  std::vector<Tensor> made;
  for (const Tensor& tensor : list) made.push_back(tensor.clone());
  return TensorList(std::move(made));
}

}  // namespace

// Each phase needs what all blocks have reduced in the one before it.
TEST_CASE("phases wait for each other on a GPU of any size") {
  Random random(11);
  const TensorList start = random_list(
      {{300000}, {}, {0}, {8192}, {8193}, {33, 31}}, DType::float32, random);
  const auto three_phases = [](const TensorList& list) {
    foreach_div_(list, total_norm(list));
    const Scalar size = total_norm(list, 1);
    foreach_mul_(list, foreach_sum(list));
    foreach_add_(list, size);
  };
  const TensorList expected = clones(start);
  three_phases(expected);
  for (const SimDevice& device : odd_sim_devices()) {
    CAPTURE(device.multiprocessors);
    CAPTURE(device.cooperative_launch);
    const OtherSimDevice other(device);
    for (const SimOrder order :
         {SimOrder::ascending, SimOrder::descending, SimOrder::shuffled}) {
      set_sim_order(order, 5);
      const TensorList list = clones(start);
      auto step = compile([&] { three_phases(list); },
                          {.fullgraph = true, .backend = Backend::simulated});
      step();
      CHECK(bitwise_equal(list, expected));
      CHECK(step.counters().reduction_phases == 2);
      CHECK(step.counters().launches == (device.cooperative_launch ? 1 : 3));
    }
  }
  set_sim_order(SimOrder::ascending);
}

TEST_CASE("a kernel that believed in a larger device goes on in phases") {
  Random random(12);
  const TensorList list = random_list({{9000}, {5}}, DType::float32, random);
  const TensorList expected = clones(list);
  const auto normalize = [](const TensorList& of) {
    foreach_div_(of, total_norm(of));
  };
  for (int n = 0; n < 3; ++n) normalize(expected);
  auto step = compile([&] { normalize(list); },
                      {.fullgraph = true, .backend = Backend::simulated});
  step();
  CHECK(step.counters().launches == 1);
  set_sim_device({.multiprocessors = 1, .blocks_each = 1});
  step();
  CHECK(step.counters().launches == 1 + 2);
  set_sim_device({});
  step();  // does not ask again
  CHECK(step.counters().launches == 1 + 2 + 2);
  CHECK(bitwise_equal(list, expected));
}

TEST_CASE("without a reduction before, it takes another launch") {
  for (const bool reduces : {false, true}) {
    Scaled scaled;
    auto step = compile([&] {
      if (reduces) static_cast<void>(total_norm(scaled.list));  // for nobody
      foreach_mul_(scaled.list, Scalar(scaled.factor));
      foreach_fill_(scaled.numbers, 7.0);
    });
    step();
    CHECK(values_of(scaled.list)[0] == std::vector<double>{6, -8, 1});
    CHECK(scaled.factor.item() == 7);
    CHECK(step.counters().graph_breaks == 1);
    CHECK(step.counters().launches == 2);
  }
}

TEST_CASE("what cannot be reduced is an error") {
  const TensorList list = {tensor({3, 4}), zeros({0})};
  CHECK(message_of<Error>([&] {
          (void)foreach_amax(list);
        }).find("tensor 1 has no elements") != std::string::npos);
  CHECK(message_of<Error>([&] {
          (void)foreach_norm(list, infinity);
        }).find("tensor 1 has no elements") != std::string::npos);
  CHECK(message_of<Error>([&] {
          (void)foreach_norm(list, -1);
        }).find("order -1 is not supported") != std::string::npos);
  const TensorList steps = TensorList::per_tensor(scalars(2, DType::float64));
  CHECK(message_of<Error>([&] {
          (void)foreach_sum(steps);
        }).find("not of per-tensor numbers") != std::string::npos);
}
