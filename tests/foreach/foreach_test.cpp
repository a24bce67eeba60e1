#include "fusebook/foreach/foreach.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/support/error.h"
#include "support/reference.h"
#include "support/testing.h"

using namespace fuse;
using namespace testing;

namespace {

using Values = std::vector<std::vector<double>>;

// All elements of a list, as doubles.
Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& tensor : list) values.push_back(tensor.to_vector());
  return values;
}

bool equal(const Values& a, const Values& b) {
  bool same = a.size() == b.size();
  for (std::size_t e = 0; same && e < a.size(); ++e) {
    same = a[e].size() == b[e].size();
    for (std::size_t i = 0; same && i < a[e].size(); ++i) {
      same = same_value(a[e][i], b[e][i]);
    }
  }
  return same;
}

const std::vector<Shape> shapes = {{3}, {0}, {1}, {2, 3, 4}, {}, {613}};

Tensor random_tensor(const Shape& shape, DType dtype, Random& random) {
  Tensor tensor = zeros(shape, dtype);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (dtype == DType::float32) {
      tensor.data<float>()[i] = any_value<float>(random);
    } else {
      tensor.data<double>()[i] = any_value<double>(random);
    }
  }
  return tensor;
}

TensorList random_list(DType dtype, Random& random) {
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    tensors.push_back(random_tensor(shape, dtype, random));
  }
  return TensorList(std::move(tensors));
}

TensorList random_scalars(DType dtype, Random& random) {
  std::vector<Tensor> tensors;
  for (std::size_t e = 0; e < shapes.size(); ++e) {
    tensors.push_back(random_tensor({}, dtype, random));
  }
  return TensorList::per_tensor(std::move(tensors));
}

// The foreach functions of one operation.
struct Form {
  OpCode op;
  std::function<TensorList(const std::vector<Operand>&)> make;
  std::function<void(const TensorList&, const std::vector<Operand>&)> into;
  bool is_move;  // the in-place form takes the list and all operands
};

const std::vector<Form>& forms() {
  using X = const std::vector<Operand>&;
  using List = const TensorList&;
  static const std::vector<Form> all = {
#define MAKE_1(name) [](X x) { return foreach_##name(x[0]); }
#define MAKE_2(name) [](X x) { return foreach_##name(x[0], x[1]); }
#define MAKE_3(name) [](X x) { return foreach_##name(x[0], x[1], x[2]); }
#define MAKE_4(name) [](X x) { return foreach_##name(x[0], x[1], x[2], x[3]); }
#define INTO_1(name) [](List l, X) { foreach_##name##_(l); }
#define INTO_2(name) [](List l, X x) { foreach_##name##_(l, x[1]); }
#define INTO_3(name) [](List l, X x) { foreach_##name##_(l, x[1], x[2]); }
#define INTO_4(name) [](List l, X x) { foreach_##name##_(l, x[1], x[2], x[3]); }
#define INTO_MOVE(name) [](List l, X x) { foreach_##name##_(l, x[0]); }
#define OP(name, arity, ...) \
  {OpCode::name, MAKE_##arity(name), INTO_##arity(name), false},
#define MOVE(name, arity, ...) \
  {OpCode::name, MAKE_##arity(name), INTO_MOVE(name), true},
#include "fusebook/ops/ops.def"
#undef OP
  };
  return all;
}

// An operand, and its value for each element of the result.
struct Choice {
  Operand operand;
  std::function<double(std::size_t entry, std::size_t element)> at;
  Rate rate;
};

Choice choose(int kind, DType dtype, Random& random) {
  if (kind == 0 || kind == 1) {
    const TensorList list =
        kind == 0 ? random_list(dtype, random)
                  : random_scalars(DType(random.below(2)), random);
    const Values values = values_of(list);
    return {list,
            [values, kind](std::size_t e, std::size_t i) {
              return values[e][kind == 0 ? i : 0];
            },
            kind == 0 ? Rate::element : Rate::entry};
  }
  const double number = any_value<double>(random);
  if (kind == 2) {
    return {number, [number](auto, auto) { return number; }, Rate::uniform};
  }
  const Tensor single = tensor(number, DType(random.below(2)));
  const double value = single.item();
  return {single, [value](auto, auto) { return value; }, Rate::uniform};
}

// All combinations of four kinds of operands.
std::vector<Choice> choose_all(const Form& form, int combination, DType dtype,
                               Random& random) {
  std::vector<Choice> choices;
  for (int k = 0; k < info(form.op).arity; ++k, combination /= 4) {
    choices.push_back(choose(combination % 4, dtype, random));
  }
  return choices;
}

Rate rate_of(const std::vector<Choice>& choices) {
  Rate rate = Rate::uniform;
  for (const Choice& choice : choices) rate = std::max(rate, choice.rate);
  return rate;
}

// Element by element, for a result of a rate and dtype.
Values expect(OpCode op, const std::vector<Choice>& choices, Rate rate,
              DType dtype) {
  Values result;
  for (std::size_t e = 0; e < shapes.size(); ++e) {
    std::size_t count = 1;
    if (rate == Rate::element) {
      for (const auto size : shapes[e]) count *= std::size_t(size);
    }
    result.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      std::array<double, 4> x{};
      for (std::size_t k = 0; k < choices.size(); ++k) {
        x[k] = choices[k].at(e, i);
      }
      result[e].push_back(reference::apply(op, dtype, x));
    }
  }
  return result;
}

std::vector<Operand> operands_of(const std::vector<Choice>& choices) {
  std::vector<Operand> operands;
  for (const Choice& choice : choices) operands.push_back(choice.operand);
  return operands;
}

}  // namespace

TEST_CASE("every operation, every kind of operand, new lists") {
  Random random(1);
  for (const Form& form : forms()) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (int c = 0; c < 1 << (2 * info(form.op).arity); ++c) {
        const auto choices = choose_all(form, c, dtype, random);
        const Rate rate = rate_of(choices);
        INFO("foreach_" << info(form.op).name << ", combination " << c);
        if (rate == Rate::uniform) {
          CHECK_THROWS_AS(form.make(operands_of(choices)), Error);
          continue;
        }
        // What is computed once per tensor is float64.
        const DType result_dtype =
            rate == Rate::element ? dtype : DType::float64;
        const TensorList result = form.make(operands_of(choices));
        REQUIRE(result.size() == shapes.size());
        CHECK(result[0].dtype() == result_dtype);
        if (rate == Rate::element) CHECK(result[3].shape() == shapes[3]);
        CHECK(equal(values_of(result),
                    expect(form.op, choices, rate, result_dtype)));
      }
    }
  }
}

TEST_CASE("every operation, every kind of operand, in place") {
  Random random(2);
  for (const Form& form : forms()) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      for (int c = 0; c < 1 << (2 * info(form.op).arity); ++c) {
        // The first operand is the list itself, except for moves.
        if (!form.is_move && c % 4 != 0) continue;
        const auto choices = choose_all(form, c, dtype, random);
        const TensorList target =
            form.is_move ? random_list(dtype, random) : choices[0].operand.list;
        INFO("foreach_" << info(form.op).name << "_, combination " << c);
        Values expected;
        if (rate_of(choices) == Rate::element) {
          expected = expect(form.op, choices, Rate::element, dtype);
        } else {
          // Computed as float64, then repeated over the tensor.
          expected = expect(form.op, choices, Rate::entry, DType::float64);
          for (std::size_t e = 0; e < shapes.size(); ++e) {
            double value = expected[e][0];
            if (dtype == DType::float32) value = double(float(value));
            expected[e].assign(std::size_t(target[e].numel()), value);
          }
        }
        form.into(target, operands_of(choices));
        CHECK(equal(values_of(target), expected));
      }
    }
  }
}

TEST_CASE("per-tensor scalars are updated in float64 and rounded to storage") {
  Random random(3);
  for (const Form& form : forms()) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      std::vector<Choice> choices;
      for (int k = 0; k < info(form.op).arity; ++k) {
        choices.push_back(
            choose(k == 0 ? 1 : 1 + random.below(3), dtype, random));
      }
      Random same(random.bits());
      const TensorList target = random_scalars(dtype, same);
      const Values old = values_of(target);
      if (!form.is_move) {
        choices[0] = {target,
                      [&](std::size_t e, std::size_t) { return old[e][0]; },
                      Rate::entry};
      }
      Values expected = expect(form.op, choices, Rate::entry, DType::float64);
      if (dtype == DType::float32) {
        for (auto& tensor : expected) tensor[0] = double(float(tensor[0]));
      }
      form.into(target, operands_of(choices));
      INFO("foreach_" << info(form.op).name << "_");
      CHECK(equal(values_of(target), expected));
    }
  }
}

TEST_CASE("numbers are rounded once, where they meet an element") {
  const TensorList list = {full({2}, 1.0)};
  // 1 + 1e-9 is 1 in float32, but not before it gets there.
  const TensorList steps = TensorList::per_tensor(scalars(1, DType::float64));
  foreach_add_(steps, 1.0);
  foreach_add_(steps, 1e-9);
  CHECK(steps[0].item() == 1.0 + 1e-9);
  foreach_mul_(list, steps);
  CHECK(list[0].to_vector() == std::vector<double>{1, 1});
  foreach_mul_(list, 0.1);
  CHECK(list[0].to_vector()[0] == double(0.1F));
}

TEST_CASE("the step count of an optimizer") {
  const TensorList steps =
      TensorList::per_tensor({tensor(1), tensor(2), tensor(5)});
  const TensorList params = {full({2}, 1), full({0}, 1), full({1, 3}, 1)};
  foreach_add_(steps, 1);
  const TensorList decay = foreach_pow(0.5, steps);
  foreach_mul_(params, decay);
  CHECK(values_of(steps) == Values{{2}, {3}, {6}});
  CHECK(values_of(decay) == Values{{0.25}, {0.125}, {1.0 / 64}});
  CHECK(values_of(params) ==
        Values{{0.25, 0.25}, {}, {1.0 / 64, 1.0 / 64, 1.0 / 64}});
}

TEST_CASE("copy, fill and zero") {
  const TensorList narrow = {tensor({1.5, -2.0}), tensor(0.1)};
  const TensorList wide = {tensor({0.1, 7.0}, DType::float64),
                           tensor(0.3, DType::float64)};
  foreach_copy_(narrow, wide);
  CHECK(values_of(narrow) == Values{{double(0.1F), 7}, {double(0.3F)}});
  foreach_fill_(wide, 0.1);
  CHECK(values_of(wide) == Values{{0.1, 0.1}, {0.1}});
  foreach_copy_(wide, narrow);
  CHECK(values_of(wide) == Values{{double(0.1F), 7}, {double(0.3F)}});
  foreach_fill_(narrow, TensorList::per_tensor({tensor(3), tensor(4)}));
  CHECK(values_of(narrow) == Values{{3, 3}, {4}});
  foreach_zero_(narrow);
  CHECK(values_of(narrow) == Values{{0, 0}, {0}});
  const TensorList copy = foreach_copy(wide);
  CHECK(bitwise_equal(copy, wide));
  CHECK(copy[0].raw_data() != wide[0].raw_data());
  foreach_copy_(wide, wide);
  CHECK(values_of(wide) == values_of(copy));
}

TEST_CASE("results are new, operands stay as they are") {
  const TensorList a = {tensor({1.0, 2.0}), tensor({3.0})};
  const TensorList b = {tensor({10.0, 20.0}), tensor({30.0})};
  const TensorList sum = foreach_add(a, b);
  CHECK(values_of(sum) == Values{{11, 22}, {33}});
  CHECK(values_of(a) == Values{{1, 2}, {3}});
  CHECK(values_of(b) == Values{{10, 20}, {30}});
  foreach_neg_(sum);
  CHECK(values_of(a) == Values{{1, 2}, {3}});
}

TEST_CASE("one list as several operands") {
  const TensorList v = {tensor({1.0, 2.0})};
  const TensorList g = {tensor({3.0, -4.0})};
  foreach_addcmul_(v, g, g, 0.5);
  CHECK(values_of(v) == Values{{5.5, 10}});
  foreach_mul_(g, g);
  CHECK(values_of(g) == Values{{9, 16}});
  foreach_addcmul_(v, v, v, 1.0);
  CHECK(values_of(v) == Values{{35.75, 110}});
  // Another list of the same tensors is the same list.
  foreach_sub_(v, TensorList({v[0]}));
  CHECK(values_of(v) == Values{{0, 0}});
}

TEST_CASE("unaligned memory") {
  std::vector<unsigned char> bytes(100);
  const Tensor odd = from_blob(bytes.data() + 1, {3});
  const Tensor wide = from_blob(bytes.data() + 33, {3}, DType::float64);
  const TensorList list = {odd};
  const TensorList wide_list = {wide};
  foreach_fill_(list, 2.5);
  foreach_mul_(list, list);
  foreach_copy_(wide_list, list);
  foreach_add_(wide_list, 0.1);
  CHECK(values_of(list) == Values{{6.25, 6.25, 6.25}});
  CHECK(values_of(wide_list) == Values{{6.35, 6.35, 6.35}});
}

TEST_CASE("empty lists and empty tensors") {
  const TensorList none;
  CHECK(foreach_add(none, none).empty());
  CHECK(foreach_mul(none, 2.0).empty());
  foreach_add_(none, 1.0);
  foreach_zero_(none);
  const TensorList empties = {zeros({0}), zeros({3, 0})};
  const TensorList result = foreach_exp(empties);
  CHECK(result.size() == 2);
  CHECK(result[1].shape() == Shape{3, 0});
  foreach_add_(empties, result);
  CHECK(values_of(empties) == Values{{}, {}});
}

namespace {

template <class Function>
std::string error_of(Function function) {
  return message_of<Error>(function);
}

const std::string file = "foreach_test.cpp:";

}  // namespace

TEST_CASE("lists of different lengths") {
  const TensorList two = {zeros({2}), zeros({2})};
  const TensorList three(
      std::vector<Tensor>{zeros({2}), zeros({2}), zeros({2})}, "grads");
  const int line = __LINE__ + 1;
  auto message = error_of([&] { foreach_add_(two, three); });
  CHECK(contains(message,
                 "foreach_add: operand 2 (grads) has 3 tensors but "
                 "operand 1 has 2"));
  CHECK(contains(message, file + std::to_string(line)));
  message = error_of([&] { foreach_addcmul_(two, two, three, 1.0); });
  CHECK(contains(message, "operand 3 (grads) has 3 tensors"));
  message = error_of([&] { static_cast<void>(foreach_lerp(two, 1.0, three)); });
  CHECK(contains(message, "operand 3 (grads) has 3 tensors but operand 1"));
  message = error_of([&] { foreach_copy_(two, three); });
  CHECK(contains(message, "operand 2 (grads) has 3 tensors"));
  const TensorList steps = TensorList::per_tensor(scalars(3), "steps");
  message = error_of([&] { foreach_mul_(two, steps); });
  CHECK(contains(message, "operand 2 (steps) has 3 tensors"));
  message = error_of([&] { foreach_add_(two, TensorList()); });
  CHECK(contains(message, "operand 2 has 0 tensors"));
  CHECK(values_of(two) == Values{{0, 0}, {0, 0}});
}

TEST_CASE("tensors of different shapes") {
  const TensorList a = {zeros({2}), zeros({2, 3})};
  const TensorList b = {zeros({2}), zeros({3, 2})};
  const int line = __LINE__ + 1;
  auto message = error_of([&] { foreach_add_(a, b); });
  CHECK(contains(message,
                 "foreach_add: tensor 1 of operand 2 has shape "
                 "[3, 2] but operand 1 has [2, 3]"));
  CHECK(contains(message, file + std::to_string(line)));
  message = error_of([&] { static_cast<void>(foreach_addcdiv(1.0, a, a, b)); });
  CHECK(contains(message,
                 "tensor 1 of operand 4 has shape [3, 2] but operand "
                 "2 has [2, 3]"));
  message = error_of([&] { foreach_copy_(a, b); });
  CHECK(contains(message, "operand 2 has shape"));
  CHECK(contains(message, "do not broadcast"));
  // Shapes count, not sizes; and they count in results of results too.
  const TensorList sum = foreach_add(a, a);
  CHECK_THROWS_AS(foreach_add_(sum, b), Error);
  // A list of 0-d tensors is no list of per-tensor scalars, but broadcasts.
  const TensorList singles = {tensor(1), tensor(2)};
  foreach_add_(a, singles);
  CHECK(values_of(a) == Values{{1, 1}, {2, 2, 2, 2, 2, 2}});
  CHECK_THROWS_AS(foreach_mul_(singles, a), Error);
}

TEST_CASE("a list has one dtype") {
  const Tensor a = zeros({2});
  const Tensor b = zeros({2}, DType::float64);
  CHECK_THROWS_AS(TensorList({a, b}), Error);
}

TEST_CASE("elements do not go into per-tensor scalars") {
  const TensorList steps = TensorList::per_tensor(scalars(1));
  const TensorList list = {full({1}, 3)};
  const auto message = error_of([&] { foreach_add_(steps, list); });
  CHECK(contains(message, "elements cannot be stored"));
  CHECK(contains(message, file));
  CHECK_THROWS_AS(foreach_copy_(steps, list), Error);
  CHECK_THROWS_AS(TensorList::per_tensor({zeros({1})}), Error);
  CHECK(steps[0].item() == 0);
}

TEST_CASE("numbers are 0-d") {
  const TensorList list = {full({2}, 3)};
  CHECK_THROWS_AS(foreach_mul_(list, tensor({1.0, 2.0})), Error);
  CHECK_THROWS_AS(foreach_mul_(list, Tensor()), Error);
}

TEST_CASE("an error leaves nothing behind for the next operation") {
  const TensorList a = {full({2}, 1)};
  const TensorList b = {full({4}, 2)};
  const TensorList c = {full({3}, 4)};
  const Counters before = process_counters();
  for (int n = 0; n < 3; ++n) CHECK_THROWS_AS(foreach_add_(a, b), Error);
  foreach_add_(c, 1.0);
  const Counters used = process_counters() - before;
  CHECK(values_of(c) == Values{{5, 5, 5}});
  CHECK(values_of(a) == Values{{1, 1}});
  CHECK(used.launches == 1);
  CHECK(used.bytes_moved == 24);
}

TEST_CASE("overlapping memory names both tensors") {
  std::vector<float> memory(16);
  const TensorList a(std::vector<Tensor>{from_blob(memory.data(), {8})}, "a");
  const TensorList b(std::vector<Tensor>{from_blob(memory.data() + 4, {8})},
                     "b");
  const auto message = error_of([&] { foreach_add_(a, b); });
  CHECK(contains(message, "a[0] is stored but overlaps b[0]"));
  const Tensor twice = zeros({4});
  CHECK_THROWS_AS(foreach_add_(TensorList({twice, twice}), 1.0), Error);
  // To read one tensor twice is no harm.
  const TensorList result = foreach_add(TensorList({twice, twice}), 1.0);
  CHECK(values_of(result) == Values{{1, 1, 1, 1}, {1, 1, 1, 1}});
}

TEST_CASE("launches are counted for elements only") {
  const TensorList list = {zeros({2}), zeros({3})};
  const TensorList steps = TensorList::per_tensor(scalars(2));
  Counters before = process_counters();
  foreach_add_(list, 1.0);
  static_cast<void>(foreach_sqrt(list));
  CHECK((process_counters() - before).launches == 2);
  before = process_counters();
  foreach_add_(steps, 1.0);
  CHECK((process_counters() - before).launches == 0);
  CHECK((process_counters() - before).compilations == 0);
}

TEST_CASE("inside a compiled function operations wait, then give the same") {
  const TensorList a = {tensor({1.0, 2.0}), tensor({3.0})};
  const TensorList b = {tensor({10.0, 20.0}), tensor({30.0})};
  TensorList kept;
  auto step = compile(
      [&] {
        TensorList sum = foreach_add(a, b);
        foreach_mul_(sum, 2.0);
        foreach_copy_(a, sum);
        kept = foreach_neg(sum);
      },
      {.backend = Backend::interpreted});
  step();
  CHECK(values_of(a) == Values{{22, 44}, {66}});
  CHECK(values_of(kept) == Values{{-22, -44}, {-66}});
  CHECK(step.counters().launches == 1);
}
