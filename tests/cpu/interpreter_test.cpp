#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/cpu/cpu_kernel.h"
#include "fusebook/cpu/tile_program.h"
#include "fusebook/runtime/launch_table.h"
#include "support/testing.h"

using namespace testing;
using fuse::OpCode;
using fuse::Place;
using fuse::Plan;
using fuse::Program;
using fuse::Rate;
using fuse::TileProgram;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();
using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

bool always(const fuse::Origin&) { return true; }

ValueId apply(Program& p, OpCode op, std::initializer_list<ValueId> in) {
  return p.apply(op, std::vector<ValueId>(in), here);
}

template <class T>
std::int32_t slot(Program& p, const MemoryList<T>& list,
                  Rate rate = Rate::element) {
  return p.slot(list.view(), list.info(rate));
}

template <class T>
ValueId load(Program& p, const MemoryList<T>& list, Rate rate = Rate::element) {
  return p.load(slot(p, list, rate), here);
}

// Runs a program, part after part; tells whether lists shared tensors.
bool run(const Program& p, int threads = 1) {
  const Plan plan = make_plan(p, always);
  fuse::Table table;
  table.bind(plan, p, threads);
  const auto kernel = fuse::make_interpreter(plan);
  in_order([&] { kernel->launch(table); });
  return table.coincident();
}

// Sizes around the tile and around vectors, and empty ones.
const std::vector<std::int64_t> sizes = {0, 1,   7,    8,    511,  512,
                                         0, 513, 1023, 1024, 1025, 4000};

template <class T>
MemoryList<T> random_list(const char* label, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::vector<T>> values;
  for (const std::int64_t n : sizes) {
    values.emplace_back(std::size_t(n));
    for (T& x : values.back()) x = any_value<T>(random);
  }
  return MemoryList<T>(label, std::move(values));
}

// The list that `f` makes of the values of two others, element by element.
template <class T, class F>
std::vector<std::vector<T>> map(const std::vector<std::vector<T>>& a,
                                const std::vector<std::vector<T>>& b, F f) {
  std::vector<std::vector<T>> result = a;
  for (std::size_t e = 0; e < a.size(); ++e) {
    for (std::size_t i = 0; i < a[e].size(); ++i) {
      result[e][i] = f(a[e][i], b[e][i]);
    }
  }
  return result;
}

template <class T>
bool equal(const std::vector<std::vector<T>>& a,
           const std::vector<std::vector<T>>& b) {
  bool same = a.size() == b.size();
  for (std::size_t e = 0; same && e < a.size(); ++e) {
    same = a[e].size() == b[e].size();
    for (std::size_t i = 0; same && i < a[e].size(); ++i) {
      same = same_value(a[e][i], b[e][i]);
    }
  }
  return same;
}

}  // namespace

TEST_CASE_TEMPLATE("tiles and tails of every length", T, float, double) {
  auto a = random_list<T>("a", 1);
  auto b = random_list<T>("b", 2);
  const auto expected = map(a.values(), b.values(), [](T x, T y) {
    const T product = x * y;
    const T root = std::sqrt(std::abs(product));
    return T(root - x);
  });
  Program p;
  const ValueId product = apply(p, OpCode::mul, {load(p, a), load(p, b)});
  const ValueId size = apply(p, OpCode::abs, {product});
  const ValueId root = apply(p, OpCode::sqrt, {size});
  p.store(slot(p, b), apply(p, OpCode::sub, {root, load(p, a)}), here);
  CHECK_FALSE(run(p));
  CHECK(equal(b.values(), expected));
}

TEST_CASE("a value in a buffer becomes one of another size") {
  auto narrow = random_list<float>("narrow", 31);
  auto wide = random_list<double>("wide", 32);
  auto widened = wide.values();
  auto narrowed = narrow.values();
  for (std::size_t e = 0; e < widened.size(); ++e) {
    for (std::size_t i = 0; i < widened[e].size(); ++i) {
      const float doubled = narrow[e][i] + narrow[e][i];
      narrowed[e][i] = std::abs(float(wide[e][i] + wide[e][i]));
      widened[e][i] = std::abs(double(doubled));
    }
  }
  Program p;
  const ValueId a = load(p, narrow);
  const ValueId b = load(p, wide);
  // What is read after a store is what was stored, converted.
  p.store(slot(p, wide), apply(p, OpCode::add, {a, a}), here);
  p.store(slot(p, narrow), apply(p, OpCode::add, {b, b}), here);
  p.store(slot(p, wide), apply(p, OpCode::abs, {load(p, wide)}), here);
  p.store(slot(p, narrow), apply(p, OpCode::abs, {load(p, narrow)}), here);
  run(p);
  CHECK(equal(wide.values(), widened));
  CHECK(equal(narrow.values(), narrowed));
}

TEST_CASE("two lists change places") {
  auto a = random_list<float>("a", 3);
  auto b = random_list<float>("b", 4);
  const auto old_a = a.values();
  const auto old_b = b.values();
  Program p;
  SUBCASE("as they are") {
    const ValueId va = load(p, a);
    const ValueId vb = load(p, b);
    p.store(slot(p, a), vb, here);
    p.store(slot(p, b), va, here);
    run(p);
    CHECK(equal(a.values(), old_b));
    CHECK(equal(b.values(), old_a));
  }
  SUBCASE("negated on the way") {
    const ValueId va = apply(p, OpCode::neg, {load(p, a)});
    const ValueId vb = apply(p, OpCode::neg, {load(p, b)});
    p.store(slot(p, a), vb, here);
    p.store(slot(p, b), va, here);
    run(p);
    const auto minus = [](float x, float) { return -x; };
    CHECK(equal(a.values(), map(old_b, old_b, minus)));
    CHECK(equal(b.values(), map(old_a, old_a, minus)));
  }
  SUBCASE("three in a circle") {
    auto c = random_list<float>("c", 5);
    const auto old_c = c.values();
    const ValueId va = load(p, a);
    const ValueId vb = load(p, b);
    const ValueId vc = load(p, c);
    p.store(slot(p, a), vb, here);
    p.store(slot(p, b), vc, here);
    p.store(slot(p, c), va, here);
    run(p);
    CHECK(equal(a.values(), old_b));
    CHECK(equal(b.values(), old_c));
    CHECK(equal(c.values(), old_a));
  }
}

TEST_CASE("old values outlive a store") {
  auto a = random_list<float>("a", 6);
  auto b = random_list<float>("b", 7);
  const auto old_a = a.values();
  const auto old_b = b.values();
  Program p;
  const ValueId before = load(p, a);
  p.store(slot(p, a), apply(p, OpCode::mul, {before, load(p, b)}), here);
  p.store(slot(p, b), apply(p, OpCode::add, {before, load(p, a)}), here);
  run(p);
  const auto product =
      map(old_a, old_b, [](float x, float y) { return x * y; });
  CHECK(equal(a.values(), product));
  CHECK(equal(b.values(),
              map(old_a, product, [](float x, float y) { return x + y; })));
}

TEST_CASE("one value into several lists") {
  auto a = random_list<float>("a", 8);
  auto b = random_list<float>("b", 9);
  auto c = random_list<float>("c", 10);
  const auto old_a = a.values();
  Program p;
  SUBCASE("computed") {
    const ValueId value = apply(p, OpCode::neg, {load(p, a)});
    for (auto* list : {&b, &a, &c}) p.store(slot(p, *list), value, here);
    run(p);
    const auto expected = map(old_a, old_a, [](float x, float) { return -x; });
    CHECK(equal(a.values(), expected));
    CHECK(equal(b.values(), expected));
    CHECK(equal(c.values(), expected));
  }
  SUBCASE("loaded") {
    p.store(slot(p, b), load(p, a), here);
    p.store(slot(p, c), load(p, a), here);
    run(p);
    CHECK(equal(a.values(), old_a));
    CHECK(equal(b.values(), old_a));
    CHECK(equal(c.values(), old_a));
  }
}

TEST_CASE("one value as both operands, with others in flight") {
  auto a = random_list<float>("a", 19);
  auto b = random_list<float>("b", 20);
  const auto old_a = a.values();
  const auto old_b = b.values();
  Program p;
  const ValueId minus = apply(p, OpCode::neg, {load(p, a)});
  const ValueId square = apply(p, OpCode::mul, {minus, minus});
  const ValueId size = apply(p, OpCode::abs, {load(p, b)});
  const ValueId root = apply(p, OpCode::sqrt, {size});
  p.store(slot(p, b), apply(p, OpCode::sub, {square, root}), here);
  run(p);
  CHECK(equal(b.values(), map(old_a, old_b, [](float x, float y) {
                const float product = x * x;
                return product - std::sqrt(std::abs(y));
              })));
}

TEST_CASE("lists that share tensors") {
  // `view` is a at the odd places, and memory of its own at the even ones.
  auto a = random_list<float>("a", 11);
  auto other = random_list<float>("other", 12);
  auto b = random_list<float>("b", 13);
  std::vector<void*> addresses;
  std::vector<std::vector<float>> seen;
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    auto& source = e % 2 == 1 ? a : other;
    addresses.push_back(source[e].data());
    seen.push_back(source[e]);
  }
  const Floats view("view", addresses, sizes);
  const auto old_a = a.values();
  const auto old_b = b.values();
  Program p;
  // a = b - a, b = exp-free function of a and view as they were.
  const ValueId va = load(p, a);
  const ValueId vb = load(p, b);
  const ValueId vv = load(p, view);
  const ValueId difference = apply(p, OpCode::sub, {vb, va});
  const ValueId product = apply(p, OpCode::mul, {vv, vv});
  const ValueId sum = apply(p, OpCode::add, {product, difference});
  p.store(slot(p, a), difference, here);
  p.store(slot(p, b), sum, here);
  CHECK(run(p));
  const auto expected_a =
      map(old_b, old_a, [](float y, float x) { return y - x; });
  CHECK(equal(a.values(), expected_a));
  CHECK(equal(b.values(), map(seen, expected_a, [](float v, float d) {
                const float square = v * v;
                return square + d;
              })));
}

TEST_CASE("numbers of every rate") {
  auto a = random_list<float>("a", 14);
  auto wide = random_list<double>("wide", 15);
  std::vector<std::vector<float>> counts;
  for (std::size_t e = 0; e < sizes.size(); ++e) counts.push_back({float(e)});
  Floats steps("steps", counts);
  const auto old_a = a.values();
  const auto old_wide = wide.values();
  Program p;
  const ValueId lr = p.argument(0.1, {});
  const ValueId step = load(p, steps, Rate::entry);
  const ValueId scale = apply(p, OpCode::mul, {step, lr});
  p.store(slot(p, steps, Rate::entry),
          apply(p, OpCode::add, {scale, p.constant(0.3, {})}), here);
  p.store(slot(p, a), apply(p, OpCode::mul, {load(p, a), scale}), here);
  p.store(slot(p, wide),
          apply(p, OpCode::add_scaled, {load(p, wide), scale, lr}), here);
  run(p, 3);
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    // Scalars are float64 until they meet an element.
    const double exact = double(e) * 0.1;
    REQUIRE(same_value(steps[e][0], float(exact + 0.3)));
    for (std::size_t i = 0; i < old_a[e].size(); ++i) {
      REQUIRE(same_value(a[e][i], old_a[e][i] * float(exact)));
      const double product = exact * 0.1;
      REQUIRE(same_value(wide[e][i], old_wide[e][i] + product));
    }
  }
}

TEST_CASE("conversions between lists") {
  auto narrow = random_list<float>("narrow", 16);
  auto wide = random_list<double>("wide", 17);
  auto filled = random_list<float>("filled", 18);
  const auto old_narrow = narrow.values();
  const auto old_wide = wide.values();
  Program p;
  const ValueId from_narrow = load(p, narrow);
  const ValueId from_wide = load(p, wide);
  p.store(slot(p, narrow), from_wide, here);
  p.store(slot(p, wide), from_narrow, here);
  p.store(slot(p, filled), p.constant(0.1, {}), here);
  run(p);
  for (std::size_t e = 0; e < sizes.size(); ++e) {
    for (std::size_t i = 0; i < old_wide[e].size(); ++i) {
      REQUIRE(same_value(narrow[e][i], float(old_wide[e][i])));
      REQUIRE(same_value(wide[e][i], double(old_narrow[e][i])));
      REQUIRE(filled[e][i] == 0.1F);
    }
  }
}

TEST_CASE("per-tensor stores of rows that threads share come last") {
  // One large tensor that eight parts read the step of, and small ones.
  std::vector<std::int64_t> many = {0, 200000, 5, 0, 300};
  Floats a = Floats::zeros("a", many);
  Doubles steps("steps", {{1}, {2}, {3}, {4}, {5}});
  Program p;
  const ValueId next =
      apply(p, OpCode::add, {load(p, steps, Rate::entry), p.constant(1, {})});
  p.store(slot(p, steps, Rate::entry), next, here);
  p.store(slot(p, a), apply(p, OpCode::add, {load(p, a), next}), here);
  for (int round = 0; round < 5; ++round) run(p, 8);
  for (std::size_t e = 0; e < many.size(); ++e) {
    CHECK(steps[e][0] == double(e) + 6);
    // The sum of five consecutive step counts.
    for (const float x : a[e]) {
      REQUIRE(x == float(5 * (e + 1) + 15));
    }
  }
}

namespace {

// The tile program of params -= lr * grads / sqrt(grads).
struct Lowered {
  Lowered() {
    const ValueId grad = load(p, grads);
    const ValueId root = apply(p, OpCode::sqrt, {grad});
    const ValueId scaled = apply(p, OpCode::div, {grad, root});
    p.store(slot(p, params),
            apply(p, OpCode::sub_scaled,
                  {load(p, params), scaled, p.argument(0.1, {})}),
            here);
    plan = make_plan(p, always);
  }
  Floats params = Floats::zeros("params", {3});
  Floats grads = Floats::zeros("grads", {3});
  Program p;
  Plan plan;
};

}  // namespace

TEST_CASE("direct programs write results where they belong") {
  const Lowered lowered;
  const TileProgram direct = make_tile_program(lowered.plan.bodies[0], true);
  REQUIRE(direct.steps.size() == 3);
  CHECK(direct.steps.back().out.kind == Place::Kind::memory);
  CHECK(direct.copies.empty());
  CHECK(direct.buffers == 1);  // the root's, taken over by the quotient
  CHECK(direct.scalars.size() == 1);
}

TEST_CASE("careful programs store nothing before all is read") {
  const Lowered lowered;
  const TileProgram careful = make_tile_program(lowered.plan.bodies[0], false);
  for (const fuse::TileStep& step : careful.steps) {
    CHECK(step.out.kind == Place::Kind::buffer);
  }
  CHECK(careful.copies.size() == 1);
}
