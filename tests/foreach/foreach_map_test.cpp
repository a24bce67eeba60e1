#include "fusebook/foreach/foreach_map.h"

#include <doctest/doctest.h>

#include <tuple>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/device/device.h"
#include "fusebook/foreach/foreach.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

using Values = std::vector<std::vector<double>>;

Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& each : list) values.push_back(each.to_vector());
  return values;
}

TensorList list_of(const Values& values, const char* label = "",
                   DType dtype = DType::float32) {
  std::vector<Tensor> tensors;
  for (const auto& each : values) tensors.push_back(tensor(each, dtype));
  return TensorList(std::move(tensors), label);
}

TensorList numbers(const std::vector<double>& values, const char* label = "") {
  std::vector<Tensor> tensors;
  for (const double each : values) {
    tensors.push_back(tensor(each, DType::float64));
  }
  return TensorList::per_tensor(std::move(tensors), label);
}

// Runs `body` eagerly, compiled and interpreted.
template <class Body>
void in_every_mode(Body body) {
  SUBCASE("eager") {
    body([](auto f) { f(); });
  }
  SUBCASE("compiled") {
    body([](auto f) {
      auto step = compile(f);
      step();
      CHECK(step.counters().launches == 1);
      CHECK(step.counters().graph_breaks == 0);
    });
  }
  SUBCASE("interpreted") {
    body([](auto f) { compile(f, {.backend = Backend::interpreted})(); });
  }
}

}  // namespace

TEST_CASE("a function of elements, applied to lists of any kind") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    const std::vector<Tensor> b = {tensor({10.0, 20.0}), tensor({30.0})};
    const TensorList n = numbers({0.5, 2});
    const Tensor zero_d = tensor(100.0);
    TensorList result;
    run([&] {
      result =
          foreach_map([](auto x, auto y, auto count, auto t,
                         auto number) { return (x + y) * count - t / number; },
                      a, b, n, zero_d, 4.0);
    });
    CHECK(values_of(result) == Values{{-19.5, -14}, {41}});
  });
}

TEST_CASE("operators, functions, numbers, Scalars and 0-d tensors mix") {
  const TensorList a = list_of({{-2, 0.25, 3}});
  const auto only = [&](auto f) { return values_of(foreach_map(f, a))[0]; };
  using V = std::vector<double>;
  CHECK(only([](auto x) { return -x; }) == V{2, -0.25, -3});
  CHECK(only([](auto x) { return 1 - x; }) == V{3, 0.75, -2});
  CHECK(only([](auto x) { return x / 2; }) == V{-1, 0.125, 1.5});
  CHECK(only([](auto x) { return (x > 0) + 2 * (x <= 0.25); }) == V{2, 3, 1});
  CHECK(only([](auto x) { return (x == 3) - (x != 3); }) == V{-1, -1, 1});
  CHECK(only([](auto x) { return (x >= 0.25) * (x < 3); }) == V{0, 1, 0});
  CHECK(only([](auto x) { return where(x > 0, sqrt(x + 1), abs(x) * x); })[2] ==
        2);
  CHECK(only([](auto x) { return clamp(x, -1, 1); }) == V{-1, 0.25, 1});
  CHECK(only([](auto x) { return lerp(x, 0, 0.5); }) == V{-1, 0.125, 1.5});
  CHECK(only([](auto x) { return addcmul(x, x, x, 2); }) == V{6, 0.375, 21});
  CHECK(only([](auto x) { return x + Scalar(1.0); }) == V{-1, 1.25, 4});
  CHECK(only([](auto x) { return tensor(2.0) * x; }) == V{-4, 0.5, 6});
  CHECK(only([](auto x) {
          auto y = x;
          y += 1;
          y *= 4;
          y -= x;
          y /= 2;
          return y;
        }) == V{-1, 2.375, 6.5});
  // Operations on numbers alone, in float64.
  CHECK(only([](auto x) {
          const Element half = 1.0;
          return x * pow(half + 1, 3);
        }) == V{-16, 2, 24});
}

TEST_CASE("several outputs") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    const TensorList n = numbers({10, 20});
    TensorList twice;
    TensorList next;
    TensorList again;
    run([&] {
      auto [x, y, z] = foreach_map(
          [](auto e, auto count) {
            const auto d = e + e;
            return std::tuple(d, count + 1, d);
          },
          a, n);
      twice = x;
      next = y;
      again = z;
    });
    CHECK(values_of(twice) == Values{{2, 4}, {6}});
    CHECK(values_of(next) == Values{{11}, {21}});
    CHECK(next.impl()->rate == Rate::entry);
    CHECK(values_of(again) == values_of(twice));
    // Each is a list of its own.
    CHECK(twice[0].raw_data() != again[0].raw_data());
  });
}

TEST_CASE("an operand that is returned becomes a new list") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    TensorList same;
    run([&] { same = foreach_map([](auto x) { return x; }, a); });
    CHECK(values_of(same) == values_of(a));
    CHECK(same[0].raw_data() != a[0].raw_data());
  });
}

TEST_CASE("in place, several outputs at once") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    const TensorList b = list_of({{10, 20}, {30}});
    const TensorList steps = numbers({4, 5});
    run([&] {
      foreach_map_(
          [](auto x, auto y, auto step, auto g, auto lr) {
            return std::tuple(x + y * lr, y - x * g, step + 1);
          },
          into(a, b, steps), list_of({{1, 1}, {1}}), 0.5);
    });
    CHECK(values_of(steps) == Values{{5}, {6}});
    CHECK(values_of(a) == Values{{6, 12}, {18}});
    CHECK(values_of(b) == Values{{9, 18}, {27}});
  });
}

TEST_CASE("outputs get what was computed from the old values") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    const TensorList b = list_of({{10, 20}, {30}});
    run([&] {
      foreach_map_([](auto x, auto y) { return std::pair(y, x); }, into(a, b));
    });
    CHECK(values_of(a) == Values{{10, 20}, {30}});
    CHECK(values_of(b) == Values{{1, 2}, {3}});
  });
}

TEST_CASE("a number and a per-tensor value are repeated over an output") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3}});
    const TensorList b = list_of({{1, 2}, {3}});
    run([&] {
      foreach_map_(
          [](auto, auto, auto n) { return std::tuple(Element(7.0), n); },
          into(a, b), numbers({4, 5}));
    });
    CHECK(values_of(a) == Values{{7, 7}, {7}});
    CHECK(values_of(b) == Values{{4, 4}, {5}});
  });
}

TEST_CASE("one tensor stands for every tensor of a list") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{1, 2}, {3, 4}, {5, 6}});
    const Tensor mask = tensor({0.0, 1.0});
    run([&] { foreach_map_([](auto x, auto m) { return x * m; }, a, mask); });
    CHECK(values_of(a) == Values{{0, 2}, {0, 4}, {0, 6}});
  });
}

TEST_CASE("several calls and other operations fuse into one launch") {
  const TensorList p = list_of({{1, 2}, {3}}, "params");
  const TensorList m = list_of({{0, 0}, {0}}, "means");
  const TensorList g = list_of({{1, 1}, {2}}, "grads");
  auto step = compile([&] {
    const TensorList scaled = foreach_map([](auto x) { return 2 * x; }, g);
    foreach_add_(scaled, 1.0);
    foreach_map_([](auto x, auto y) { return lerp(x, y, 0.5); }, m, scaled);
    foreach_map_([](auto x, auto y) { return x - 0.5 * y; }, p, m);
  });
  step();
  CHECK(step.counters().launches == 1);
  CHECK(values_of(m) == Values{{1.5, 1.5}, {2.5}});
  CHECK(values_of(p) == Values{{0.25, 1.25}, {1.75}});
}

TEST_CASE("a recorded list may be an output") {
  const TensorList a = list_of({{1, 2}});
  TensorList kept;
  auto step = compile([&] {
    kept = foreach_map([](auto x) { return x + 1; }, a);
    foreach_map_([](auto x, auto y) { return x * y; }, kept, a);
  });
  step();
  CHECK(values_of(kept) == Values{{2, 6}});
  CHECK(step.counters().launches == 1);
}

TEST_CASE("empty lists and empty tensors") {
  in_every_mode([](auto run) {
    const TensorList a = list_of({{}, {3}});
    run([&] { foreach_map_([](auto x) { return x + 1; }, a); });
    CHECK(values_of(a) == Values{{}, {4}});
  });
  CHECK(foreach_map([](auto x) { return x + 1; }, TensorList()).size() == 0);
}

TEST_CASE("a number moves into an argument alone, not with its neighbours") {
  const TensorList a = list_of({{1, 2}}, "a");
  double lr = 0.5;
  auto step = compile([&] {
    foreach_map_([](auto x, auto y, auto z) { return x * y + z; }, a, lr, 3.0);
  });
  step();
  lr = 0.25;
  step();
  lr = 0.125;
  step();
  CHECK(step.counters().compilations == 2);
  CHECK(contains(step.output_code(), "0x1.8p+1f /* 3 */"));
}

// ---- Misuse ----------------------------------------------------------------

namespace {

template <class F>
std::string error_of(F f) {
  return message_of<Error>(f);
}

// The same error in every mode, eager first; nothing is written.
template <class F>
void check_error(F f, std::vector<std::string> parts) {
  const std::string here = "tests/foreach/foreach_map_test.cpp:";
  parts.push_back(here);
  auto compiled = compile(f);
  auto interpreted = compile(f, {.backend = Backend::interpreted});
  for (const std::string& message :
       {error_of(f), error_of(compiled), error_of(interpreted)}) {
    INFO(message);
    for (const std::string& part : parts) CHECK(contains(message, part));
  }
}

}  // namespace

TEST_CASE("lists of different length") {
  const TensorList a = list_of({{1, 2}, {3}}, "params");
  const TensorList b = list_of({{1, 2}}, "grads");
  check_error(
      [&] { (void)foreach_map([](auto x, auto y) { return x + y; }, a, b); },
      {"foreach_map: ",
       "operand 2 (grads) has 1 tensors but operand 1 "
       "(params) has 2"});
  check_error(
      [&] { foreach_map_([](auto x, auto, auto) { return x; }, a, 1.0, b); },
      {"foreach_map_: ",
       "operand 2 (grads) has 1 tensors but output 1 (params) has 2"});
  check_error(
      [&] {
        (void)foreach_map([](auto x, auto n) { return x * n; }, a,
                          numbers({1}));
      },
      {"operand 2 has 1 tensors but operand 1 (params) has 2"});
  CHECK(values_of(a) == Values{{1, 2}, {3}});
}

TEST_CASE("different shapes") {
  const TensorList a = list_of({{1, 2}, {3, 5, 7}}, "params");
  const TensorList b = list_of({{1, 2}, {3, 4}}, "grads");
  check_error([&] { foreach_map_([](auto x, auto y) { return x + y; }, a, b); },
              {"foreach_map_: tensor 1 of operand 1 (grads) has shape [2] but "
               "output 1 (params) has [3], and these do not broadcast"});
  check_error(
      [&] {
        (void)foreach_map([](auto x, auto y) { return x + y; }, a,
                          tensor({1.0, 2.0}));
      },
      {"tensor 1 of operand 2 (tensor) has shape [2] but operand 1 (params) "
       "has [3], and these do not broadcast"});
  const TensorList c = list_of({{1, 2}, {3}}, "one");
  check_error([&] { foreach_map_([](auto x, auto y) { return x + y; }, c, b); },
              {"foreach_map_: output with shape [1] doesn't match the "
               "broadcast shape [2]: tensor 1 of output 1 (one) is written but "
               "result 1 of the function has shape [2]"});
}

TEST_CASE("outputs that overlap") {
  std::vector<float> memory(8, 1);
  const TensorList a({from_blob(memory.data(), {4})}, "a");
  const TensorList half({from_blob(memory.data() + 2, {4})}, "half");
  const TensorList twin({from_blob(memory.data(), {4})}, "twin");
  const auto both = [](auto x, auto y) { return std::pair(x + 1, y + x); };
  check_error([&] { foreach_map_(both, into(a, half)); },
              {"a", "is stored but overlaps ", "half"});
  check_error([&] { foreach_map_(both, into(a, a)); },
              {"output 2 (a) is the same list as output 1 (a)"});
  check_error([&] { foreach_map_(both, into(a, twin)); },
              {"output 2 (twin) is the same list as output 1 (a)"});
  check_error(
      [&] { foreach_map_([](auto x, auto y) { return x + y; }, a, half); },
      {"a", "is stored but overlaps ", "half"});
  // One tensor of the output, repeated for the others.
  const TensorList two(
      {from_blob(memory.data(), {2}), from_blob(memory.data() + 2, {2})},
      "two");
  check_error(
      [&] { foreach_map_([](auto x, auto y) { return x + y; }, two, two[0]); },
      {"two", "is stored but overlaps ", "tensor"});
  check_error(
      [&] { foreach_map_([](auto x, auto y) { return x + y; }, two, two[1]); },
      {"two", "is stored but overlaps ", "tensor"});
  CHECK(memory == std::vector<float>(8, 1));
  foreach_map_([](auto x, auto y) { return x + y; }, a, a[0]);
  CHECK(memory == std::vector<float>{2, 2, 2, 2, 1, 1, 1, 1});
}

TEST_CASE("an operand that no result comes from may lie anywhere") {
  for (const bool compiled : {false, true}) {
    CAPTURE(compiled);
    std::vector<float> memory(8, 1);
    const TensorList a({from_blob(memory.data(), {4})}, "a");
    const TensorList half({from_blob(memory.data() + 2, {4})}, "half");
    const auto run = [&](auto f) {
      auto step = compile([&] { foreach_map_(f, a, half); });
      compiled ? step() : foreach_map_(f, a, half);
    };
    run([](auto x, auto) { return x + 1; });
    CHECK(memory == std::vector<float>{2, 2, 2, 2, 1, 1, 1, 1});
    // What is computed from it and not returned does not count either.
    run([](auto x, auto y) {
      (void)(y * 2);
      return x + 1;
    });
    CHECK(memory == std::vector<float>{3, 3, 3, 3, 1, 1, 1, 1});
    const auto refused = [&](auto f) {
      return message_of<Error>([&] { run(f); });
    };
    CHECK(
        contains(refused([](auto x, auto y) { return x + to(y * 2, float32); }),
                 "overlaps"));
    CHECK(contains(
        refused([](auto x, auto y) { return x + to(to(y, float64), float32); }),
        "overlaps"));
    CHECK(contains(refused([](auto, auto y) { return y; }), "overlaps"));
  }
}

TEST_CASE("a list that is read after it was overwritten under another name") {
  std::vector<float> memory(8, 1);
  const auto at_start = [&] { return from_blob(memory.data(), {2}); };
  const TensorList a({at_start(), from_blob(memory.data() + 2, {2})}, "a");
  const TensorList b({at_start(), from_blob(memory.data() + 4, {2})}, "b");
  // All reads of one call come before its stores.
  foreach_map_([](auto x, auto y) { return x + y; }, a, b);
  CHECK(memory[0] == 2);
  auto step = compile([&] {
    foreach_map_([](auto x, auto y) { return x + y; }, a, b);
    foreach_map_([](auto x, auto y) { return x + y; }, a, b);
  });
  step();
  // 2, 4, 8: each call sees what the one before has stored.
  CHECK(memory == std::vector<float>{8, 8, 4, 4, 1, 1, 1, 1});
  CHECK(step.counters().graph_breaks == 1);
  CHECK(step.counters().launches == 2);
}

TEST_CASE("what the function may not do") {
  const TensorList a = list_of({{1, 2}}, "params");
  const TensorList b = list_of({{1, 2}}, "others");
  const Tensor lr = tensor(0.5);
  check_error([&] { (void)foreach_map([](auto) {}, a); },
              {"foreach_map: the function returns nothing", "at "});
  check_error([&] { foreach_map_([](auto) {}, a); },
              {"foreach_map_: the function returns nothing", "at "});
  check_error([&] { (void)foreach_map([](auto) { return 1.0; }, a); },
              {"result 1 of the function is a number"});
  check_error([&] { foreach_map_([](auto x, auto) { return x; }, into(a, b)); },
              {"the function returns 1 value for 2 outputs"});
  check_error([&] { foreach_map_([](auto x) { return std::tuple(x, x); }, a); },
              {"the function returns 2 values for 1 output"});
  check_error(
      [&] { (void)foreach_map([](auto x) { return x * x.item(); }, a); },
      {"item() of operand 1 (params) at ", "where()"});
  check_error(
      [&] { (void)foreach_map([](auto x) { return x * (x + 1).item(); }, a); },
      {"item() of an intermediate value at "});
  check_error(
      [&] {
        (void)foreach_map([&](auto x, auto) { return x * lr.item(); }, a, lr);
      },
      {"the function reads the data of operand 2,"});
  check_error(
      [&] {
        (void)foreach_map([&](auto x) { return x * a[0].data<float>()[0]; }, a);
      },
      {"the function reads the data of operand 1 (params)"});
  check_error(
      [&] {
        (void)foreach_map([&](auto x) { return x * b[0].sum().item(); }, a);
      },
      {"the function reads the data of a tensor of shape [2]"});
  check_error(
      [&] {
        foreach_map_(
            [&](auto x) {
              foreach_add_(a, 1.0);
              return x;
            },
            a);
      },
      {"the function calls foreach_add at ", "whole lists"});
  check_error(
      [&] {
        (void)foreach_map(
            [&](auto x) {
              (void)foreach_map([](auto y) { return y; }, a);
              return x;
            },
            a);
      },
      {"the function calls foreach_map at ", "whole lists"});
  CHECK(values_of(a) == Values{{1, 2}});
}

TEST_CASE("operands that are none") {
  const TensorList a = list_of({{1, 2}}, "params");
  const TensorList n = numbers({1}, "steps");
  check_error([&] { (void)foreach_map([](auto x) { return x; }, 1.0); },
              {"no operand is a list of tensors"});
  check_error(
      [&] { (void)foreach_map([](auto x) { return x; }, tensor({1.0})); },
      {"no operand is a list of tensors"});
  check_error([&] { (void)foreach_map([](auto x) { return x; }, Tensor()); },
              {"undefined tensor"});
  check_error(
      [&] { foreach_map_([](auto x, auto) { return x; }, tensor({1.0}), a); },
      {"output 1 is not a list of tensors"});
  check_error([&] { foreach_map_([](auto, auto x) { return x; }, n, a); },
              {"result 1 of the function varies by element, but output "
               "1 (steps) holds one number per tensor"});
}

TEST_CASE("after an error everything works again") {
  const TensorList a = list_of({{1, 2}}, "params");
  CHECK_THROWS_AS((void)foreach_map([](auto x) { return x * x.item(); }, a),
                  Error);
  CHECK(a[0].data<float>()[0] == 1);
  foreach_map_([](auto x) { return x + 1; }, a);
  CHECK(values_of(a) == Values{{2, 3}});
}

TEST_CASE("a number that lies in an output has the value from before") {
  for (const bool compiled : {false, true}) {
    const Tensor a = tensor({-1.5, -0.75, -0.5});
    const Tensor b = tensor({1.0, 2.0, 3.0});
    const TensorList first({a});
    const TensorList second({b});
    const Tensor number = a.select(0, 1);
    const auto both = [&] {
      foreach_map_(
          [](auto x, auto, auto s) { return std::tuple(x * 0.0 + 5.0, s); },
          into(first, second), number);
    };
    if (compiled) {
      auto step = compile(both);
      step();
      CHECK(step.counters().graph_breaks == 0);
      CHECK(step.counters().launches == 1);
    } else {
      both();
    }
    CHECK(a.to_vector() == std::vector<double>{5, 5, 5});
    CHECK(b.to_vector() == std::vector<double>{-0.75, -0.75, -0.75});
  }
}

TEST_CASE("operands on two devices are an error that names one and the place") {
  const Tensor here = tensor({1.0, 2.0});
  const TensorList a({here}, "a");
  const TensorList b({here.to(parse_device("cuda-sim"))}, "b");
  const std::string message = message_of<Error>(
      [&] { foreach_map_([](auto x, auto y) { return x + y; }, into(a), b); });
  CHECK(contains(message,
                 "operand 1 (b) is on cuda-sim but output 1 (a) is "
                 "on cpu, at "));
  CHECK(contains(message, "foreach_map_test.cpp:"));
}
