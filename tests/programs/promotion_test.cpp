// Which dtype a result has, where values change theirs, and how often they
// are rounded on the way.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/ir/plan.h"
#include "fusebook/ops/element.h"
#include "fusebook/support/error.h"
#include "support/reduced.h"
#include "support/step_testing.h"

using namespace fuse;
using namespace step_testing;
using testing::contains;

namespace {

constexpr DType f32 = DType::float32;
constexpr DType f64 = DType::float64;
constexpr DType f16 = DType::float16;
constexpr DType bf16 = DType::bfloat16;
constexpr DType i16 = DType::int16;

TensorList list_of(std::initializer_list<double> values, DType dtype,
                   const char* label = "") {
  return TensorList({tensor(values, dtype)}, label);
}

// 1/3 and the like, rounded to the dtype, or integers; other numbers for another
// seed.
TensorList numbers(DType dtype, std::uint64_t seed) {
  testing::Random random(seed);
  const double scale = dtype == i16 ? 100 : 0.1;
  return {random_tensor({257}, random, scale, dtype),
          random_tensor({3, 5}, random, scale, dtype)};
}

using Lists = std::vector<TensorList>;

// What `body` makes of lists, the same in all three ways.
template <class Make, class Body>
Lists in_every_mode(Make make, Body body) {
  const Lists eager = make();
  body(eager);
  for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
    const Lists lists = make();
    auto step =
        compile([&] { body(lists); }, {.fullgraph = true, .backend = backend});
    step();
    CHECK(step.counters().launches == 1);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      INFO("list " << i << ", backend " << int(backend));
      CHECK(bitwise_equal(lists[i], eager[i]));
    }
  }
  return eager;
}

std::string error_of(const std::function<void()>& function) {
  return testing::message_of<Error>(function);
}

struct Promotion {
  DType a;
  DType b;
  DType result;
};

// As torch.promote_types has those of floats.
const std::vector<Promotion> table = {
    {f32, f32, f32},  {f32, f64, f64},  {f32, f16, f32},    {f32, bf16, f32},
    {f32, i16, f32},  {f64, f32, f64},  {f64, f64, f64},    {f64, f16, f64},
    {f64, bf16, f64}, {f64, i16, f64},  {f16, f32, f32},    {f16, f64, f64},
    {f16, f16, f16},  {f16, bf16, f32}, {f16, i16, f32},    {bf16, f32, f32},
    {bf16, f64, f64}, {bf16, f16, f32}, {bf16, bf16, bf16}, {bf16, i16, f32},
    {i16, f32, f32},  {i16, f64, f64},  {i16, f16, f32},    {i16, bf16, f32},
    {i16, i16, i16},
};

}  // namespace

TEST_CASE("each pair of types") {
  CHECK(table.size() == 25);
  for (const auto& [a, b, result] : table) {
    CAPTURE(name_of(a));
    CAPTURE(name_of(b));
    CHECK(promote(a, b) == result);
    const auto x = numbers(a, 1);
    const auto y = numbers(b, 2);
    std::vector<TensorList> sums = {foreach_add(x, y)};
    for (const Backend backend : {Backend::interpreted, Backend::compiled}) {
      TensorList sum;
      auto step = compile([&] { sum = foreach_add(x, y); },
                          {.fullgraph = true, .backend = backend});
      step();
      sums.push_back(sum);
    }
    for (const TensorList& sum : sums) {
      for (std::size_t t = 0; t < 2; ++t) {
        CHECK(sum[t].dtype() == result);
        const auto left = x[t].to_vector();
        const auto right = y[t].to_vector();
        const auto actual = sum[t].to_vector();
        for (std::size_t i = 0; i < left.size(); ++i) {
          // Exact as doubles but for two doubles, which round once.
          const double exact = result == f64
                                   ? left[i] + right[i]
                                   : double(float(left[i]) + float(right[i]));
          CHECK(actual[i] == reduced::round(result, exact));
        }
      }
    }
  }
}

TEST_CASE("three dtypes meet in one") {
  const auto a = list_of({1.5}, f16);
  const auto b = list_of({2.5}, bf16);
  const auto c = list_of({0.1}, f32);
  CHECK(foreach_add_scaled(a, b, a)[0].dtype() == f32);
  CHECK(foreach_addcmul(a, b, c, 2.0)[0].dtype() == f32);
  CHECK(foreach_where(a, b, list_of({1}, f64))[0].dtype() == f64);
}

TEST_CASE("numbers and per-tensor values take no part") {
  for (const DType dtype : reduced::all_dtypes) {
    CAPTURE(name_of(dtype));
    const auto list = list_of({1, 2, 3}, dtype);
    const auto steps = TensorList::per_tensor({tensor(2.0, f64)});
    CHECK(foreach_mul(list, 0.1)[0].dtype() == dtype);
    CHECK(foreach_mul(list, tensor(0.1, f64))[0].dtype() == dtype);
    CHECK(foreach_mul(list, Scalar(0.1))[0].dtype() == dtype);
    CHECK(foreach_mul(steps, list)[0].dtype() == dtype);
    CHECK(foreach_pow(0.5, TensorList::per_tensor({tensor(3.0, bf16)}))[0]
              .dtype() == f64);
  }
}

TEST_CASE("a number meets 16 bits as a float") {
  // Neither rounded to 16 bits first, nor kept as a double.
  const double number = 1 + 0x1p-10 + 0x1p-40;
  const Tensor held = tensor(number, f64);
  for (const DType dtype : reduced::types) {
    CAPTURE(name_of(dtype));
    const Lists lists = in_every_mode(
        [&] { return Lists{numbers(dtype, 3), numbers(dtype, 3)}; },
        [&](const Lists& all) {
          foreach_mul_(all[0], number);
          foreach_mul_(all[1], TensorList::per_tensor({held, held}));
        });
    const auto before = numbers(dtype, 3)[0].to_vector();
    for (const TensorList& list : lists) {
      const auto after = list[0].to_vector();
      for (std::size_t i = 0; i < before.size(); ++i) {
        const float product = float(before[i]) * float(number);
        CHECK(after[i] == reduced::round(dtype, double(product)));
      }
    }
  }
}

TEST_CASE("every result is rounded to its dtype") {
  // 256 + 1 is 256 in bfloat16, 2048 + 1 is 2048 in float16: as often as one
  // likes, and compiled too.
  for (const auto& [dtype, large] :
       std::vector<std::pair<DType, double>>{{bf16, 256}, {f16, 2048}}) {
    CAPTURE(name_of(dtype));
    const Lists lists = in_every_mode(
        [d = dtype, l = large] { return Lists{list_of({l, -l}, d)}; },
        [](const Lists& all) {
          const TensorList once = foreach_add(all[0], 1.0);
          foreach_copy_(all[0], foreach_sub(foreach_add(once, 1.0), all[0]));
        });
    CHECK(lists[0][0].to_vector() == std::vector<double>{0, 2});
  }
}

TEST_CASE("to(float32) opts out of the rounding") {
  const Lists lists =
      in_every_mode([] { return Lists{list_of({256, -256}, bf16)}; },
                    [](const Lists& all) {
                      foreach_map_(
                          [](auto p) {
                            const auto wide = to(p, float32);
                            return wide + 1.0 + 1.0 - wide;
                          },
                          all[0]);
                    });
  CHECK(lists[0][0].to_vector() == std::vector<double>{2, 2});
}

TEST_CASE("an operation in place computes in the common type, rounds once") {
  // 1 + (2^-8 + 2^-30): in bfloat16 alone 1 + 2^-8 rounds down to 1, as a
  // float the sum is the middle, which rounds down, as a double it is not.
  const double odd = 0x1p-8 + 0x1p-30;
  const Lists lists = in_every_mode(
      [&] {
        return Lists{list_of({1}, bf16), list_of({odd}, f64),
                     list_of({1}, bf16), list_of({odd}, f32)};
      },
      [](const Lists& all) {
        foreach_add_(all[0], all[1]);
        foreach_add_(all[2], all[3]);
      });
  CHECK(lists[0][0].dtype() == bf16);
  CHECK(lists[0][0].item() == 1 + 0x1p-7);
  CHECK(lists[2][0].item() == 1);
}

TEST_CASE("halves of a float are rounded to all types but their own") {
  const std::array types = {DType::float16, DType::bfloat16, DType::int16};
  const Lists lists = in_every_mode(
      [&] {
        Lists all = {numbers(f32, 3)};
        for (int half = 0; half < 2; ++half) {
          for (const DType type : types) all.push_back(numbers(type, 4));
        }
        return all;
      },
      [&](const Lists& all) {
        for (std::size_t k = 0; k < types.size(); ++k) {
          foreach_copy_(all[1 + k], foreach_high_half(all[0]));
          foreach_copy_(all[1 + types.size() + k], foreach_low_half(all[0]));
        }
      });
  for (std::size_t t = 0; t < 2; ++t) {
    const auto whole = lists[0][t].to_vector();
    for (std::size_t k = 0; k < types.size(); ++k) {
      const auto high = lists[1 + k][t].to_vector();
      const auto low = lists[1 + types.size() + k][t].to_vector();
      for (std::size_t i = 0; i < whole.size(); ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(float(whole[i]));
        const auto upper = std::bit_cast<float>((bits + 0x8000U) & 0xffff0000U);
        CHECK(high[i] == reduced::round(types[k], upper));
        CHECK(low[i] == reduced::round(types[k], std::int16_t(bits)));
      }
    }
  }
}

TEST_CASE("a number is stored with one rounding") {
  const double above = 1 + 0x1p-8 + 0x1p-40;
  const Tensor held = tensor(above, f64);
  const Lists lists = in_every_mode(
      [] {
        return Lists{list_of({0}, bf16), list_of({0}, bf16),
                     list_of({0}, bf16)};
      },
      [&](const Lists& all) {
        foreach_fill_(all[0], above);
        foreach_copy_(all[1], held);
        foreach_copy_(all[2], TensorList::per_tensor({held}));
      });
  for (const TensorList& list : lists) CHECK(list[0].item() == 1 + 0x1p-7);
  Tensor host = tensor(0, bf16);
  host.fill_(above);
  CHECK(host.item() == 1 + 0x1p-7);
}

namespace {

constexpr std::source_location here = std::source_location::current();

ValueId apply(Program& p, OpCode op, std::vector<ValueId> in) {
  return p.apply(op, in, here);
}

int casts_in(const Program& program) {
  const Plan plan = make_plan(program, [](const Origin&) { return true; });
  int count = 0;
  for (const Body& body : plan.bodies) {
    for (const BodyNode& node : body.nodes) count += node.op == OpCode::cast;
  }
  return count;
}

}  // namespace

TEST_CASE("casts are shared, and dropped with what needed them") {
  Program p;
  auto narrow = testing::MemoryList<float>::zeros("narrow", {3});
  auto wide = testing::MemoryList<double>::zeros("wide", {3});
  const auto slot = p.slot(wide.view(), wide.info());
  const ValueId n = p.load(p.slot(narrow.view(), narrow.info()), here);
  const ValueId w = p.load(slot, here);
  const ValueId sum = apply(p, OpCode::add, {n, w});
  const ValueId product = apply(p, OpCode::mul, {sum, n});
  p.store(slot, apply(p, OpCode::div, {product, p.cast(n, f64, here)}), here);
  CHECK(casts_in(p) == 1);
  // A cast that nobody stores.
  apply(p, OpCode::neg, {p.cast(w, bf16, here)});
  CHECK(casts_in(p) == 1);
  // To the type a value has is no operation.
  CHECK(p.cast(w, f64, here) == w);
}

TEST_CASE("foreach_to") {
  const auto list = list_of({0.1, -2, 1e6}, f32, "params");
  const TensorList half = foreach_to(list, f16);
  CHECK(half[0].dtype() == f16);
  CHECK(half[0].to_vector() ==
        std::vector<double>{reduced::round(f16, double(0.1F)), -2, HUGE_VAL});
  CHECK(foreach_to(list, f32).impl() == list.impl());
  TensorList converted;
  auto step =
      compile([&] { converted = foreach_to(list, f16); }, {.fullgraph = true});
  step();
  CHECK(bitwise_equal(converted, half));
  CHECK(step.counters().bytes_moved == 3 * (4 + 2));
  // Also of a list that has no memory yet.
  const auto sum =
      compile([&] { converted = foreach_to(foreach_add(list, 1.0), f64); });
  Compiled again = sum;
  again();
  CHECK(converted[0].dtype() == f64);
  CHECK(converted[0].to_vector()[1] == -1);
}

TEST_CASE("what to() cannot convert") {
  const auto list = list_of({1}, bf16, "params");
  const auto steps = TensorList::per_tensor({tensor(1)}, "steps");
  CHECK(contains(error_of([&] { (void)foreach_to(steps, f32); }),
                 "foreach_to at "));
  const auto number = error_of([&] {
    (void)foreach_map([](auto p, auto x) { return p * to(x, float32); }, list,
                      0.5);
  });
  CHECK(contains(number, "foreach_map at "));
  CHECK(contains(number, "to(float32) of operand 2 at "));
  CHECK(contains(number, "promotion_test.cpp:"));
  CHECK(contains(number, "are always float64"));
  const auto entry = error_of([&] {
    (void)foreach_map([](auto p, auto x) { return p * to(x + 1, bfloat16); },
                      list, steps);
  });
  CHECK(contains(entry, "to(bfloat16) of an intermediate value"));
  const auto inside = error_of([&] {
    (void)foreach_map(
        [&](auto p) {
          (void)foreach_to(list, f32);
          return p;
        },
        list);
  });
  CHECK(contains(inside, "the function calls foreach_to at "));
}

TEST_CASE("foreach_map mixes dtypes") {
  const auto a = list_of({1, 2}, bf16, "params");
  const auto b = list_of({1, 2}, f64, "grads");
  foreach_map_([](auto x, auto y) { return std::pair(x + y, y * x); },
               into(a, b));
  CHECK(a[0].dtype() == bf16);
  CHECK(b[0].dtype() == f64);
  CHECK(a[0].to_vector() == std::vector<double>{2, 4});
  CHECK(b[0].to_vector() == std::vector<double>{1, 4});
  const auto sums = foreach_map(
      [](auto x, auto y) {
        return std::tuple(x + y, to(y, bfloat16) + x, to(y, bfloat16));
      },
      a, b);
  CHECK(sums[0][0].dtype() == f64);
  CHECK(sums[1][0].dtype() == bf16);
  CHECK(sums[2][0].dtype() == bf16);
}

TEST_CASE("a list of another dtype is another kernel") {
  TensorList list = list_of({1, 2}, f32);
  auto step = compile([&] { foreach_add_(list, 0.1); });
  const TensorList single = list;
  step();
  CHECK(step.counters().compilations == 1);
  list = list_of({1, 2}, bf16);
  step();
  CHECK(step.counters().compilations == 2);
  list = list_of({1, 2}, f16);
  step();
  CHECK(step.counters().compilations == 3);
  CHECK(list[0].to_vector()[0] == reduced::round(f16, double(1 + float(0.1))));
  // And that of the first is still there.
  list = single;
  step();
  CHECK(step.counters().compilations == 3);
  CHECK(list[0].to_vector()[0] == double(1 + 0.1F + 0.1F));
}
