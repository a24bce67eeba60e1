#include "fusebook/ir/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <initializer_list>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/ir/simplify.h"
#include "fusebook/ops/loops.h"
#include "fusebook/optim/adam.h"
#include "support/testing.h"

using namespace testing;
using fuse::Body;
using fuse::BodyNode;
using fuse::DType;
using fuse::OpCode;
using fuse::Origin;
using fuse::Plan;
using fuse::Program;
using fuse::Rate;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();
using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

bool always(const Origin&) { return true; }
bool never(const Origin&) { return false; }
bool unless_lr(const Origin& origin) {
  return origin.name == nullptr || std::string(origin.name) != "lr";
}

ValueId apply(Program& p, OpCode op, std::initializer_list<ValueId> in) {
  return p.apply(op, std::vector<ValueId>(in), here);
}

Plan plan_of(const Program& p, fuse::MayBake may_bake = always) {
  return make_plan(p, may_bake);
}

// Lists that stay where they are while programs point to them.
class Lists {
 public:
  std::int32_t elements(Program& p, const char* label = "list") {
    floats_.push_back(Floats::zeros(label, {3, 2}));
    return p.slot(floats_.back().view(), {DType::float32, Rate::element});
  }
  std::int32_t entries(Program& p, const char* label = "steps") {
    doubles_.push_back(Doubles::zeros(label, {1, 1}));
    return p.slot(doubles_.back().view(), {DType::float64, Rate::entry});
  }

 private:
  std::deque<Floats> floats_;
  std::deque<Doubles> doubles_;
};

int count(const Body& body, OpCode op) {
  return int(std::count_if(body.nodes.begin(), body.nodes.end(),
                           [&](const BodyNode& n) { return n.op == op; }));
}

const BodyNode& only(const Body& body, OpCode op) {
  REQUIRE(count(body, op) == 1);
  return *std::find_if(body.nodes.begin(), body.nodes.end(),
                       [&](const BodyNode& n) { return n.op == op; });
}

// params -= lr * grads over lists of its own.
void sgd(Program& p, Lists& lists, double lr, Origin origin = {.name = "lr"}) {
  const auto params = lists.elements(p, "params");
  const auto grads = lists.elements(p, "grads");
  const ValueId value = p.load(params, here);
  const ValueId grad = p.load(grads, here);
  const ValueId rate = p.constant(lr, origin);
  p.store(params, apply(p, OpCode::sub_scaled, {value, grad, rate}), here);
}

}  // namespace

TEST_CASE("dead code goes, and what it alone reads is not bound") {
  Program p;
  Lists lists;
  const auto a = lists.elements(p);
  const auto unused = lists.elements(p);
  const auto b = lists.elements(p);
  apply(p, OpCode::exp, {p.load(unused, here)});
  const ValueId overwritten = apply(p, OpCode::log, {p.load(a, here)});
  p.store(b, overwritten, here);
  p.store(b, apply(p, OpCode::sqrt, {p.load(a, here)}), here);
  const Plan plan = plan_of(p);
  REQUIRE(plan.bodies.size() == 1);
  const Body& body = plan.bodies[0];
  CHECK(count(body, OpCode::exp) == 0);
  CHECK(count(body, OpCode::log) == 0);
  CHECK(body.nodes.size() == 2);
  REQUIRE(plan.instances.size() == 1);
  CHECK(plan.instances[0].slots == std::vector<std::int32_t>{a, b});
  CHECK(body.slots[0].loaded);
  CHECK_FALSE(body.slots[0].stored);
  CHECK_FALSE(body.slots[1].loaded);
  CHECK(body.slots[1].stored);
  CHECK(body.bytes_per_element() == 8);
}

TEST_CASE("a program without stores is an empty plan") {
  Program p;
  Lists lists;
  apply(p, OpCode::exp, {p.load(lists.elements(p), here)});
  const Plan plan = plan_of(p);
  CHECK(plan.bodies.empty());
  CHECK(plan.instances.empty());
  CHECK(plan.args.empty());
}

TEST_CASE("equal subexpressions are computed once") {
  Program p;
  Lists lists;
  const auto a = lists.elements(p);
  const auto b = lists.elements(p);
  const ValueId va = p.load(a, here);
  const ValueId vb = p.load(b, here);
  // sqrt(a * b) + sqrt(a * b), and b * a, which is another expression.
  const ValueId one = apply(p, OpCode::sqrt, {apply(p, OpCode::mul, {va, vb})});
  const ValueId two = apply(p, OpCode::sqrt, {apply(p, OpCode::mul, {va, vb})});
  const ValueId swapped = apply(p, OpCode::mul, {vb, va});
  p.store(a, apply(p, OpCode::add, {one, two}), here);
  p.store(b, swapped, here);
  const Plan plan = plan_of(p);
  const Body& body = plan.bodies[0];
  CHECK(count(body, OpCode::sqrt) == 1);
  CHECK(count(body, OpCode::mul) == 2);
  const BodyNode& sum = only(body, OpCode::add);
  CHECK(sum.in[0] == sum.in[1]);
  // Nodes stand behind their operands.
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    for (int k = 0; k < body.nodes[i].arity; ++k) {
      CHECK(body.nodes[i].in[k] < std::int32_t(i));
      CHECK(body.nodes[i].in[k] >= 0);
    }
  }
}

TEST_CASE("equal constants are one, but not zeros of different sign") {
  Program p;
  Lists lists;
  const auto a = lists.elements(p);
  ValueId value = p.load(a, here);
  for (const double c : {0.0, -0.0, 2.0, 2.0}) {
    value = apply(p, OpCode::add, {value, p.constant(c, {})});
  }
  p.store(a, value, here);
  CHECK(count(plan_of(p).bodies[0], OpCode::constant) == 3);
}

TEST_CASE("constants fold to the bits of run time") {
  Random random(21);
  for (int i = 0; i < fuse::op_count; ++i) {
    const auto op = OpCode(i);
    const int arity = fuse::info(op).arity;
    for (int n = 0; n < 20; ++n) {
      Program p;
      Lists lists;
      const auto a = lists.elements(p);
      std::array<double, 4> x{};
      std::vector<ValueId> in;
      for (int k = 0; k < arity; ++k) {
        x[std::size_t(k)] = any_value<double>(random);
        in.push_back(p.constant(x[std::size_t(k)], {}));
      }
      const ValueId folded = p.apply(op, in, here);
      p.store(a, apply(p, OpCode::add, {p.load(a, here), folded}), here);
      const Plan plan = plan_of(p);
      const Body& body = plan.bodies[0];
      REQUIRE(body.nodes.size() == 3);
      // As an array of one element, by the loop that run time would take.
      double expected = 0;
      const void* const in_memory[] = {std::data(x), &x[1], &x[2], &x[3]};
      fuse::loops_for("baseline")
          ->ops[1][std::size_t(op)][0](&expected, in_memory, 1);
      INFO(fuse::name_of(op));
      CHECK(same_value(only(body, OpCode::constant).value, expected));
      // What may change is not folded.
      CHECK(plan_of(p, never).bodies[0].nodes.size() == std::size_t(arity) + 3);
    }
  }
}

TEST_CASE("rates: each value at the slowest stage it can be computed in") {
  Program p;
  Lists lists;
  const auto params = lists.elements(p, "params");
  const auto steps = lists.entries(p);
  const ValueId beta = p.argument(0.9, {.name = "betas", .index = 0});
  const ValueId lr = p.argument(0.1, {.name = "lr"});
  const ValueId product = apply(p, OpCode::mul, {beta, lr});
  const ValueId power = apply(p, OpCode::pow, {beta, p.load(steps, here)});
  const ValueId scale = apply(p, OpCode::div, {product, power});
  p.store(params, apply(p, OpCode::mul, {p.load(params, here), scale}), here);
  const Plan plan = plan_of(p);
  const Body& body = plan.bodies[0];
  CHECK(only(body, OpCode::pow).rate == Rate::entry);
  CHECK(only(body, OpCode::div).rate == Rate::entry);
  CHECK(only(body, OpCode::div).dtype == DType::float64);
  int uniform = 0;
  int element = 0;
  for (const BodyNode& n : body.nodes) {
    if (n.op != OpCode::mul) continue;
    uniform += int(n.rate == Rate::uniform);
    element += int(n.rate == Rate::element);
  }
  CHECK(uniform == 1);
  CHECK(element == 1);
  CHECK(plan.args.size() == 2);
  CHECK(plan.column_count == 0);
  CHECK(body.bytes_per_entry() == 8);
}

TEST_CASE("one structure, 300 groups: one body, 300 instances") {
  Program p;
  Lists lists;
  for (int g = 0; g < 300; ++g) sgd(p, lists, 0.01 * g);
  const Plan plan = plan_of(p);
  CHECK(plan.bodies.size() == 1);
  REQUIRE(plan.instances.size() == 300);
  CHECK(plan.column_count == 1);
  CHECK(plan.guards.empty());
  CHECK(plan.args.empty());
  CHECK(only(plan.bodies[0], OpCode::argument).rate == Rate::entry);
  for (std::int32_t g = 0; g < 300; ++g) {
    const fuse::Instance& instance = plan.instances[std::size_t(g)];
    CHECK(instance.body == 0);
    CHECK(instance.slots == std::vector<std::int32_t>{2 * g, 2 * g + 1});
    REQUIRE(instance.columns.size() == 1);
    CHECK(p.scalars()[std::size_t(instance.columns[0])].value == 0.01 * g);
  }
}

TEST_CASE("equal numbers of merged groups are baked, and guarded each") {
  Program p;
  Lists lists;
  for (int g = 0; g < 3; ++g) sgd(p, lists, 0.5);
  const Plan plan = plan_of(p);
  CHECK(plan.column_count == 0);
  CHECK(only(plan.bodies[0], OpCode::constant).value == 0.5);
  CHECK(plan.guards.size() == 3);
  CHECK(plan.matches(p));

  for (int moved = 0; moved < 3; ++moved) {
    Program other;
    Lists other_lists;
    for (int g = 0; g < 3; ++g) {
      sgd(other, other_lists, g == moved ? std::nextafter(0.5, 1) : 0.5);
    }
    CHECK_FALSE(plan.matches(other));
    // Now they differ, so they are columns and nothing is guarded.
    const Plan columns = plan_of(other);
    CHECK(columns.column_count == 1);
    CHECK(columns.matches(p));
  }
}

TEST_CASE("guards compare bits") {
  Program zero;
  Program minus_zero;
  Program nan;
  Lists lists;
  sgd(zero, lists, 0.0);
  sgd(minus_zero, lists, -0.0);
  sgd(nan, lists, std::nan(""));
  const Plan plan = plan_of(zero);
  CHECK(plan.matches(zero));
  CHECK_FALSE(plan.matches(minus_zero));
  CHECK(plan_of(nan).matches(nan));
}

TEST_CASE("what may not be baked is an argument of its own") {
  Program p;
  Lists lists;
  const auto params = lists.elements(p);
  const ValueId lr = p.constant(0.1, {.name = "lr"});
  const ValueId eps = p.constant(1e-8, {.name = "eps"});
  const ValueId tensor = p.argument(3, {.name = "momentum"});
  ValueId value = p.load(params, here);
  for (const ValueId scalar : {lr, eps, tensor}) {
    value = apply(p, OpCode::mul, {value, scalar});
  }
  p.store(params, value, here);
  const Plan plan = plan_of(p, unless_lr);
  REQUIRE(plan.args.size() == 2);
  CHECK(p.scalars()[std::size_t(plan.args[0])].value == 0.1);
  CHECK(p.scalars()[std::size_t(plan.args[1])].value == 3);
  REQUIRE(plan.guards.size() == 1);
  CHECK(plan.guards[0].value == 1e-8);
  const BodyNode& constant = only(plan.bodies[0], OpCode::constant);
  CHECK(constant.value == 1e-8);
  CHECK(constant.origin.name == std::string("eps"));
}

TEST_CASE("a shared scalar becomes a column of every group that uses it") {
  Program p;
  Lists lists;
  const ValueId lr = p.argument(0.25, {.name = "lr"});
  const ValueId doubled = apply(p, OpCode::add, {lr, lr});
  for (int g = 0; g < 2; ++g) {
    const auto params = lists.elements(p);
    const ValueId value = p.load(params, here);
    p.store(params, apply(p, OpCode::mul, {value, doubled}), here);
  }
  const Plan plan = plan_of(p);
  REQUIRE(plan.bodies.size() == 1);
  CHECK(plan.column_count == 1);
  CHECK(plan.instances[0].columns == plan.instances[1].columns);
  // What is computed from a column is computed for each tensor.
  CHECK(only(plan.bodies[0], OpCode::add).rate == Rate::entry);
}

TEST_CASE("other structures are other bodies") {
  Program p;
  Lists lists;
  sgd(p, lists, 0.1);
  const auto extra = lists.elements(p);
  p.store(extra, apply(p, OpCode::neg, {p.load(extra, here)}), here);
  sgd(p, lists, 0.2);
  const Plan plan = plan_of(p);
  REQUIRE(plan.bodies.size() == 2);
  REQUIRE(plan.instances.size() == 3);
  // Instances stand body by body.
  CHECK(plan.instances[0].body == 0);
  CHECK(plan.instances[1].body == 0);
  CHECK(plan.instances[2].body == 1);
  CHECK(count(plan.bodies[0], OpCode::sub_scaled) == 1);
  CHECK(count(plan.bodies[1], OpCode::neg) == 1);
  CHECK(plan.instances[2].slots == std::vector<std::int32_t>{extra});
}

TEST_CASE("a difference in dtype alone makes another body") {
  Program p;
  Lists lists;
  Doubles wide = Doubles::zeros("wide", {3, 2});
  const auto a = lists.elements(p);
  const auto b = p.slot(wide.view(), {DType::float64, Rate::element});
  for (const auto slot : {a, b}) {
    p.store(slot, apply(p, OpCode::neg, {p.load(slot, here)}), here);
  }
  CHECK(plan_of(p).bodies.size() == 2);
}

TEST_CASE("a store of a store's value keeps both") {
  Program p;
  Lists lists;
  const auto a = lists.elements(p);
  const auto b = lists.elements(p);
  const ValueId value = apply(p, OpCode::exp, {p.load(a, here)});
  p.store(a, value, here);
  p.store(b, value, here);
  const Plan plan = plan_of(p);
  const Body& body = plan.bodies[0];
  REQUIRE(body.stores.size() == 2);
  CHECK(body.stores[0].value == body.stores[1].value);
  CHECK(body.bytes_per_element() == 12);
}

TEST_CASE("Adam moves 28 bytes an element") {
  // Keeps the program that a step records.
  class Keep final : public fuse::Executor {
   public:
    void execute(const Program& program) override {
      plan = make_plan(program, always);
    }
    void graph_break(const std::string& why) override { FAIL(why); }
    Plan plan;
  };
  std::vector<fuse::Tensor> params = {fuse::zeros({5}), fuse::zeros({2, 3})};
  for (fuse::Tensor& param : params) {
    param.set_grad(fuse::full(param.shape(), 1));
  }
  fuse::Adam adam(params);
  Keep keep;
  fuse::Recorder recorder(keep, true);
  {
    const fuse::Recording recording(recorder);
    adam.step();
  }
  recorder.finish();
  REQUIRE(keep.plan.bodies.size() == 1);
  const Body& body = keep.plan.bodies[0];
  // Loads of param, grad and two averages; stores of all but the grad.
  CHECK(body.bytes_per_element() == 28);
  // The step count, loaded and stored.
  CHECK(body.bytes_per_entry() == 16);
  CHECK(keep.plan.column_count == 0);
  // The bias corrections are no work for elements.
  for (const BodyNode& n : body.nodes) {
    if (n.op == OpCode::pow) CHECK(n.rate == Rate::entry);
  }
}
