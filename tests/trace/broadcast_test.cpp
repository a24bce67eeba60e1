// Lists whose tensors broadcast to one shape, in every operation and mode,
// against plain loops over single elements.
#include "fusebook/trace/broadcast.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/foreach/foreach_map.h"
#include "fusebook/optim/all.h"
#include "fusebook/support/error.h"
#include "support/broadcast_testing.h"
#include "support/reference.h"
#include "support/testing.h"

using namespace fuse;
using namespace broadcast_testing;
using testing::contains;
using testing::Random;
using testing::same_value;

namespace {

template <class Function>
std::string error_of(Function function) {
  return testing::message_of<Error>(function);
}

// What each of four operands has in each entry, and what comes of them.
struct Pattern {
  std::array<Shape, 4> shapes;
  Shape all;
};

const std::vector<Pattern> patterns = {
    {{{{3, 4}, {4}, {1}, {3, 1}}}, {3, 4}},
    {{{{4}, {3, 4}, {3, 1}, {1, 4}}}, {3, 4}},
    {{{{3, 1}, {1, 4}, {}, {1}}}, {3, 4}},
    {{{{5}, {5}, {5}, {5}}}, {5}},
    {{{{2, 1, 3}, {4, 1}, {3}, {2, 4, 1}}}, {2, 4, 3}},
    {{{{0, 4}, {4}, {1, 1}, {0, 1}}}, {0, 4}},
    {{{{1}, {0}, {1}, {1}}}, {0}},
    {{{{513}, {1}, {1, 513}, {2, 1}}}, {2, 513}},
    {{{{}, {}, {}, {}}}, {}},
    {{{{2, 1, 3, 1}, {7}, {5, 1, 1}, {1, 1, 3, 7}}}, {2, 5, 3, 7}},
    {{{{600, 3}, {3}, {600, 1}, {1}}}, {600, 3}}};

std::vector<Shape> shapes_of(std::size_t operand) {
  std::vector<Shape> shapes;
  for (const Pattern& each : patterns) shapes.push_back(each.shapes[operand]);
  return shapes;
}

// The shape that the first `count` operands of an entry broadcast to.
Shape shape_of(const Pattern& pattern, std::size_t count) {
  Shape all;
  for (std::size_t k = 0; k < count; ++k) {
    all = broadcast_by_hand(all, pattern.shapes[k]);
  }
  return all;
}

TensorList random_list(const std::vector<Shape>& shapes, DType dtype,
                       Random& random, const char* label = "") {
  std::vector<Tensor> tensors;
  for (const Shape& shape : shapes) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < numel_of(shape); ++i) {
      values.push_back(reduced::any_value(dtype, random));
    }
    tensors.push_back(tensor(values, dtype).view(shape));
  }
  return TensorList(std::move(tensors), label);
}

Values values_of(const TensorList& list) {
  Values values;
  for (const Tensor& each : list) values.push_back(each.to_vector());
  return values;
}

void check_same(const Values& actual, const Values& wanted) {
  REQUIRE(actual.size() == wanted.size());
  for (std::size_t e = 0; e < wanted.size(); ++e) {
    INFO("tensor " << e);
    REQUIRE(actual[e].size() == wanted[e].size());
    for (std::size_t i = 0; i < wanted[e].size(); ++i) {
      INFO("element " << i << ": " << actual[e][i] << ", " << wanted[e][i]);
      REQUIRE(same_value(actual[e][i], wanted[e][i]));
    }
  }
}

// The operation on elements that index arithmetic finds.
Values by_hand(OpCode op, DType dtype, const std::vector<TensorList>& operands,
               const std::vector<Shape>& to) {
  std::vector<Values> from;
  for (const TensorList& each : operands) from.push_back(values_of(each));
  Values results;
  for (std::size_t e = 0; e < to.size(); ++e) {
    results.emplace_back();
    for (std::int64_t i = 0; i < numel_of(to[e]); ++i) {
      std::array<double, 4> x{};
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const Shape& shape = operands[k][e].shape();
        x[k] = from[k][e][place_in(shape, to[e], i)];
      }
      results.back().push_back(reference::apply(op, dtype, x));
    }
  }
  return results;
}

struct Mode {
  const char* name;
  std::function<void(const std::function<void()>&)> run;
};

void run_compiled(const std::function<void()>& body, Backend backend) {
  auto step = compile(body, {.fullgraph = true, .backend = backend});
  step();
  CHECK(step.counters().launches == 1);
}

const std::vector<Mode> modes = {
    {"eager", [](const auto& body) { body(); }},
    {"compiled",
     [](const auto& body) { run_compiled(body, Backend::compiled); }},
    {"interpreted",
     [](const auto& body) { run_compiled(body, Backend::interpreted); }},
    {"on a simulated GPU",
     [](const auto& body) { run_compiled(body, Backend::simulated); }}};

std::vector<const Operand*> pointers_to(const std::vector<Operand>& operands) {
  std::vector<const Operand*> all;
  for (const Operand& each : operands) all.push_back(&each);
  return all;
}

const auto here = std::source_location::current();

Tensor counting(const Shape& shape, double first = 1) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < numel_of(shape); ++i) {
    values.push_back(first + double(i));
  }
  return tensor(values).view(shape);
}

TensorList labelled(std::vector<Tensor> tensors, const char* label) {
  return TensorList(std::move(tensors), label);
}

}  // namespace

TEST_CASE("every operation broadcasts its operands") {
  struct Case {
    OpCode op;
    std::vector<Operand> operands;
    std::vector<Shape> to;
    Values wanted;
  };
  Random random(7);
  std::vector<Case> cases;
  for (int i = 0; i < op_count; ++i) {
    const auto arity = std::size_t(info(OpCode(i)).arity);
    const DType dtype = i % 3 == 0 ? DType::bfloat16 : DType::float32;
    Case each = {OpCode(i), {}, {}, {}};
    std::vector<TensorList> lists;
    for (std::size_t k = 0; k < arity; ++k) {
      lists.push_back(random_list(shapes_of(k), dtype, random));
      each.operands.emplace_back(lists.back());
    }
    for (const Pattern& pattern : patterns) {
      each.to.push_back(shape_of(pattern, arity));
    }
    each.wanted = by_hand(each.op, dtype, lists, each.to);
    cases.push_back(std::move(each));
  }
  for (const Mode& mode : modes) {
    std::vector<TensorList> results;
    mode.run([&] {
      results.clear();
      for (const Case& each : cases) {
        results.push_back(
            foreach_apply(each.op, pointers_to(each.operands), here));
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO(name_of(cases[i].op) << ", " << mode.name);
      for (std::size_t e = 0; e < patterns.size(); ++e) {
        CHECK(results[i][e].shape() == cases[i].to[e]);
        CHECK(results[i][e].is_contiguous());
      }
      check_same(values_of(results[i]), cases[i].wanted);
    }
  }
}

TEST_CASE("every operation in place broadcasts what is no output") {
  struct Case {
    OpCode op;
    std::vector<TensorList> lists;
    TensorList before;
    Values wanted;
  };
  Random random(8);
  std::vector<Shape> to;
  for (const Pattern& each : patterns) to.push_back(each.all);
  std::vector<Case> cases;
  for (int i = 0; i < op_count; ++i) {
    const auto op = OpCode(i);
    const std::size_t first = is_move(op) ? 1 : 0;  // the target is no operand
    Case each = {op, {}, random_list(to, DType::float32, random), {}};
    for (std::size_t k = first; k < first + std::size_t(info(op).arity); ++k) {
      each.lists.push_back(
          k == 0 ? each.before
                 : random_list(shapes_of(k), DType::float32, random));
    }
    each.wanted = by_hand(op, DType::float32, each.lists, to);
    cases.push_back(std::move(each));
  }
  for (const Mode& mode : modes) {
    std::vector<TensorList> targets;
    for (const Case& each : cases) {
      std::vector<Tensor> copies;
      for (const Tensor& tensor : each.before) copies.push_back(tensor.clone());
      targets.emplace_back(std::move(copies));
    }
    mode.run([&] {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const Case& each = cases[i];
        std::vector<Operand> operands(each.lists.begin(), each.lists.end());
        if (!is_move(each.op)) operands[0] = Operand(targets[i]);
        foreach_apply_(each.op, targets[i], pointers_to(operands), here);
      }
    });
    for (std::size_t i = 0; i < cases.size(); ++i) {
      INFO(name_of(cases[i].op) << ", " << mode.name);
      check_same(values_of(targets[i]), cases[i].wanted);
    }
  }
}

TEST_CASE("an operand that lies in another order broadcasts, too") {
  const Tensor base = counting({4, 3});
  const TensorList a({base.t(), counting({2, 3, 4})});
  const TensorList b(
      {counting({4, 2}).select(1, 1), counting({4, 3}).t().narrow(0, 1, 1)});
  const std::vector<Shape> to = {{3, 4}, {2, 3, 4}};
  const Values wanted = by_hand(OpCode::sub, DType::float32, {a, b}, to);
  for (const Mode& mode : modes) {
    INFO(mode.name);
    TensorList result;
    mode.run([&] { result = foreach_sub(a, b); });
    check_same(values_of(result), wanted);
  }
}

TEST_CASE("an output is never the tensor that is broadcast") {
  const TensorList bias = labelled({counting({5}), counting({4})}, "bias");
  const TensorList x = labelled({counting({5}), counting({3, 4})}, "x");
  const int line = __LINE__ + 1;
  std::string message = error_of([&] { foreach_add_(bias, x); });
  CHECK(message ==
        "foreach_add: output with shape [4] doesn't match the broadcast shape "
        "[3, 4]: tensor 1 of operand 1 (bias) is written but operand 2 (x) has "
        "shape [3, 4], at " +
            std::string(__FILE__) + ":" + std::to_string(line));
  message = error_of([&] { foreach_copy_(bias, x); });
  CHECK(contains(message, "foreach_copy: output with shape [4]"));
  // Leading dimensions count, of whatever size.
  message = error_of([&] {
    foreach_mul_(TensorList{counting({4})}, TensorList{counting({1, 4})});
  });
  CHECK(contains(message,
                 "output with shape [4] doesn't match the broadcast "
                 "shape [1, 4]"));
  message = error_of(
      [&] { foreach_mul_(TensorList{zeros({})}, TensorList{counting({2})}); });
  CHECK(contains(message, "output with shape [] doesn't match"));
  message = error_of([&] {
    auto step = compile([&] { foreach_addcmul_(bias, x, 2.0, 1.0); });
    step();
  });
  CHECK(contains(message, "foreach_addcmul: output with shape [4]"));
  CHECK(bitwise_equal(bias[1], counting({4})));
  // Two that are broadcast give a shape that neither has.
  message = error_of([&] {
    foreach_add_(TensorList{counting({3, 1})}, TensorList{counting({4})});
  });
  CHECK(contains(message,
                 "output with shape [3, 1] doesn't match the "
                 "broadcast shape [3, 4]"));
}

TEST_CASE("shapes that do not broadcast are named with their tensor") {
  const TensorList a = labelled({counting({4}), counting({2, 3})}, "a");
  const TensorList b = labelled({counting({2, 1}), counting({3, 2})}, "b");
  const int line = __LINE__ + 1;
  std::string message = error_of([&] { (void)foreach_add(a, b); });
  CHECK(message ==
        "foreach_add: tensor 1 of operand 2 (b) has shape [3, 2] but operand 1 "
        "(a) has [2, 3], and these do not broadcast, at " +
            std::string(__FILE__) + ":" + std::to_string(line));
  // The operand that gave a size is the one that is named.
  message = error_of([&] {
    (void)foreach_addcmul(TensorList{counting({1})}, TensorList{counting({3})},
                          TensorList{counting({2})}, 1.0);
  });
  CHECK(contains(message,
                 "tensor 0 of operand 3 has shape [2] but operand 2 has [3]"));
  message = error_of([&] { foreach_add_(a, b); });
  CHECK(contains(message,
                 "tensor 1 of operand 2 (b) has shape [3, 2] but "
                 "operand 1 (a) has [2, 3]"));
}

TEST_CASE("a step that broadcasts is one launch and one kernel") {
  const TensorList x = labelled({full({3, 4}, 1), full({2, 2}, 1)}, "x");
  const TensorList bias = labelled({counting({4}), counting({2, 1})}, "bias");
  auto step = compile([&] { foreach_add_(x, foreach_mul(bias, 2.0)); },
                      {.fullgraph = true});
  for (int i = 1; i <= 4; ++i) {
    step();
    CHECK(x[0].to_vector()[5] == 1 + 4 * i);
    CHECK(x[1].to_vector()[3] == 1 + 4 * i);
  }
  CHECK(step.counters().compilations == 1);
  CHECK(step.counters().launches == 4);
  CHECK(step.counters().uploads == 1);
}

TEST_CASE("a pattern of its own is no reason to compile, a stride is one") {
  const TensorList x = labelled({full({3, 4}, 1)}, "x");
  const auto run = [&](auto& step, const Shape& shape) {
    step(labelled({counting(shape)}, "bias"));
  };
  auto step = compile([&](const TensorList& bias) { foreach_add_(x, bias); });
  run(step, {3, 4});
  run(step, {4});
  CHECK(step.counters().compilations == 2);
  REQUIRE(step.recompile_reports().size() == 1);
  CHECK(step.recompile_reports()[0].changes ==
        std::vector<std::string>{"bias was contiguous, now broadcast"});
  run(step, {3, 1});
  run(step, {1});
  run(step, {1, 4});
  run(step, {3, 4});
  CHECK(step.counters().compilations == 2);
  // 1 + element (2, 3) of all that was added.
  CHECK(x[0].to_vector()[11] == 1 + 12 + 4 + 3 + 1 + 4 + 12);
}

TEST_CASE("dimensions of size 1 in front change no kernel") {
  const TensorList x = labelled({full({1, 4}, 1)}, "x");
  auto step = compile([&](const TensorList& by) { foreach_add_(x, by); });
  step(labelled({counting({1, 4})}, "by"));
  step(labelled({counting({4})}, "by"));
  CHECK(step.counters().compilations == 1);
  CHECK(x[0].to_vector() == std::vector<double>{3, 5, 7, 9});
}

TEST_CASE("what is computed in the same function broadcasts without a break") {
  Random random(3);
  const auto shapes = std::vector<Shape>{{3, 4}, {2, 5, 6}, {7}};
  const TensorList p = random_list(shapes, DType::float32, random);
  const TensorList b = random_list({{4}, {5, 1}, {7}}, DType::float32, random);
  const TensorList n = TensorList::per_tensor({tensor(2, DType::float64),
                                               tensor(3, DType::float64),
                                               tensor(5, DType::float64)});
  const auto body = [](auto x, auto y, auto k) {
    auto root = sqrt(y * y) * k;
    return std::pair(x + root * root, root - 1);
  };
  const auto wanted = foreach_map(body, p, b, n);
  CHECK(wanted[1][0].shape() == Shape{4});
  CHECK(wanted[1][1].shape() == Shape{5, 1});
  for (std::size_t e = 0; e < shapes.size(); ++e) {
    const std::vector<double> x = p[e].to_vector();
    const std::vector<double> y = b[e].to_vector();
    const std::vector<double> sums = wanted[0][e].to_vector();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto f =
          float(y[place_in(b[e].shape(), shapes[e], std::int64_t(i))]);
      const float root = std::sqrt(f * f) * float(n[e].item());
      REQUIRE(same_value(sums[i], double(float(x[i]) + root * root)));
    }
  }
  for (const Backend backend :
       {Backend::compiled, Backend::interpreted, Backend::simulated}) {
    TensorList result;
    auto step = compile([&] { result = foreach_map(body, p, b, n)[0]; },
                        {.fullgraph = true, .backend = backend});
    step();
    CHECK(step.counters().launches == 1);
    CHECK(bitwise_equal(result, wanted[0]));
    // Numbers per tensor are for lists of one shape: here they meet two.
    std::array<TensorList, 2> results;
    auto both = compile([&] { results = foreach_map(body, p, b, n); },
                        {.backend = backend});
    both();
    CHECK(bitwise_equal(results[0], wanted[0]));
    CHECK(bitwise_equal(results[1], wanted[1]));
  }
}

// In eager mode, and compiled; both lists have the same values then.
template <class Body>
Counters check_like_eager(Body body, const CompileOptions& options = {}) {
  const TensorList x = labelled({full({3, 4}, 1), full({5}, 2)}, "x");
  const TensorList b = labelled({counting({4}), counting({5})}, "b");
  const TensorList other_x = labelled({full({3, 4}, 1), full({5}, 2)}, "x");
  const TensorList other_b = labelled({counting({4}), counting({5})}, "b");
  auto step = compile([&] { body(other_x, other_b); }, options);
  for (int i = 0; i < 3; ++i) {
    body(x, b);
    step();
    CHECK(bitwise_equal(x, other_x));
    CHECK(bitwise_equal(b, other_b));
  }
  CHECK(step.counters().compilations == step.counters().launches / 3);
  return step.counters();
}

TEST_CASE("what is stored before or after it is broadcast is cut there") {
  const auto before = [](const TensorList& x, const TensorList& b) {
    foreach_mul_(b, 2.0);
    foreach_add_(x, b);
  };
  const auto after = [](const TensorList& x, const TensorList& b) {
    foreach_add_(x, b);
    foreach_mul_(b, 2.0);
  };
  const auto value = [](const TensorList& x, const TensorList& b) {
    const TensorList old = foreach_add(b, 1.0);
    foreach_mul_(b, 2.0);
    foreach_add_(x, old);
  };
  for (const Counters& each :
       {check_like_eager(before), check_like_eager(after),
        check_like_eager(value)}) {
    CHECK(each.graph_breaks == 3);
    CHECK(each.launches == 6);
  }
  const std::string message =
      error_of([&] { check_like_eager(value, {.fullgraph = true}); });
  CHECK(contains(message, "is broadcast before it is computed"));
  CHECK_THROWS_AS(check_like_eager(before, {.fullgraph = true}), Error);
}

TEST_CASE("stores elsewhere are no reason to cut") {
  const auto between = [](const TensorList& x, const TensorList& b) {
    const TensorList old = foreach_add(b, 1.0);
    foreach_mul_(x, 0.5);
    foreach_add_(x, old);
  };
  const TensorList y = labelled({full({3, 4}, 1), full({5}, 2)}, "y");
  const auto second = [&](const TensorList& x, const TensorList& b) {
    foreach_map_([](auto p, auto, auto q) { return std::pair(p + q, q * 2); },
                 into(x, y), b);
  };
  for (const Counters& each : {check_like_eager(between, {.fullgraph = true}),
                               check_like_eager(second, {.fullgraph = true})}) {
    CHECK(each.graph_breaks == 0);
    CHECK(each.launches == 3);
  }
  CHECK(y[0].to_vector()[6] == 6);
}

TEST_CASE("a number that fills a list broadcasts with it") {
  check_like_eager([](const TensorList& x, const TensorList& b) {
    const TensorList filled = foreach_mul(b, 0.0);
    foreach_fill_(filled, 0.1);
    foreach_add_(x, filled);
    foreach_fill_(foreach_add(x, b), 2.0);
  });
}

TEST_CASE("outputs of one foreach_map_ may have shapes of their own") {
  const auto counters = check_like_eager([](const TensorList& x,
                                            const TensorList& b) {
    foreach_map_([](auto p, auto q) { return std::pair(p + 2 * q, q * 0.5); },
                 into(x, b));
  });
  CHECK(counters.graph_breaks == 3);  // b is stored over what x needs
  const TensorList x = labelled({full({3, 4}, 1)}, "x");
  const TensorList b = labelled({counting({4})}, "b");
  const auto both = [](auto p, auto q) { return std::pair(q, p); };
  const int line = __LINE__ + 1;
  const auto swap = [&] { foreach_map_(both, into(x, b)); };
  CHECK(error_of(swap) ==
        "foreach_map_: output with shape [4] doesn't match the broadcast shape "
        "[3, 4]: tensor 0 of output 2 (b) is written but result 2 of the "
        "function has shape [3, 4], at " +
            std::string(__FILE__) + ":" + std::to_string(line));
  CHECK(x[0].to_vector()[5] == 1);
  // A smaller result is repeated over its output.
  foreach_map_([](auto, auto q) { return q + 1; }, x, b);
  CHECK(x[0].to_vector()[5] == 3);
}

TEST_CASE("one tensor for a list broadcasts to each of its tensors") {
  const TensorList x({full({3, 2}, 1), full({2}, 1), full({4, 1, 2}, 1)});
  const Tensor pair = tensor({10.0, 20.0});
  const TensorList sums =
      foreach_map([](auto a, auto b) { return a + b; }, x, pair);
  for (const Tensor& each : sums) {
    CHECK(each.to_vector()[0] == 11);
    CHECK(each.to_vector().back() == 21);
  }
  CHECK(sums[2].shape() == Shape{4, 1, 2});
}

TEST_CASE("0-d tensors beside others change no dtype, as in torch") {
  const TensorList x({full({3}, 1), full({2, 2}, 2)});
  const TensorList numbers(
      {tensor(0.1, DType::float64), tensor(0.2, DType::float64)});
  for (const Mode& mode : modes) {
    INFO(mode.name);
    TensorList result;
    TensorList twice;
    mode.run([&] {
      result = foreach_mul(x, numbers);
      twice = foreach_mul(x, foreach_mul(numbers, 2.0));
    });
    REQUIRE(result[0].dtype() == DType::float32);
    CHECK(result[0].to_vector()[1] == double(float(0.1)));
    CHECK(result[1].to_vector()[3] == double(2 * float(0.2)));
    REQUIRE(twice[0].dtype() == DType::float32);
    CHECK(twice[1].to_vector()[0] == double(2 * float(0.4)));
  }
  // Beside others without dimensions they count.
  const TensorList none({tensor(1.0), tensor(2.0)});
  CHECK(foreach_mul(none, numbers)[0].dtype() == DType::float64);
  // A list has one dtype: what would differ from tensor to tensor is refused.
  const TensorList some({zeros({3}), tensor(2.0)});
  const std::string message =
      error_of([&] { (void)foreach_mul(some, numbers); });
  CHECK(contains(message, "foreach_mul: "));
  CHECK(contains(message, "0-d"));
  CHECK(foreach_mul(some, none)[0].dtype() == DType::float32);
}

TEST_CASE("memory of others is followed where it goes") {
  const TensorList x = labelled({full({3, 4}, 0)}, "x");
  std::vector<double> memory_a = {1, 2, 3, 4};
  std::vector<double> memory_b = {10, 20, 30, 40};
  const TensorList like({zeros({4}, DType::float64)});
  const std::vector<void*> at_a = {memory_a.data()};
  const std::vector<void*> at_b = {memory_b.data()};
  const TensorList foreign = TensorList::from_blob(at_a, like, "foreign");
  auto step = compile([&] { foreach_add_(x, foreign); }, {.fullgraph = true});
  step();
  CHECK(x[0].to_vector()[6] == 3);
  foreign.rebind(at_b);
  step();
  CHECK(x[0].to_vector()[6] == 33);
  foreach_add_(x, foreign);
  CHECK(x[0].to_vector()[6] == 63);
  CHECK(step.counters().compilations == 1);
  // What was recorded with the old addresses runs first.
  auto twice = compile([&] {
    foreach_add_(x, foreign);
    foreign.rebind(at_a);
    foreach_add_(x, foreign);
  });
  twice();
  CHECK(x[0].to_vector()[6] == 96);
  CHECK(twice.counters().graph_breaks == 1);
}

TEST_CASE("a tensor that is broadcast is seen before it is written") {
  const TensorList x = labelled({full({3, 4}, 1)}, "x");
  Tensor bias = counting({4});
  const TensorList list({bias});
  auto step = compile([&] {
    foreach_add_(x, list);
    bias.fill_(100);
  });
  step();
  CHECK(x[0].to_vector()[6] == 4);
  CHECK(step.counters().graph_breaks == 1);
  // What overlaps the output has no order.
  const TensorList row({x[0].select(0, 1)});
  CHECK_THROWS_AS(foreach_add_(x, row), Error);
}

TEST_CASE("what a list was broadcast to is kept while it is in use") {
  const TensorList bias({counting({4})});
  for (std::int64_t rows = 1; rows < 40; ++rows) {
    const TensorList sums = foreach_add(TensorList{zeros({rows, 4})}, bias);
    REQUIRE(sums[0].to_vector().back() == 4);
  }
  CHECK(bias.impl()->broadcasts.size() <= 4);
}
