#include "fusebook/ir/program.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::Error;
using fuse::Node;
using fuse::OpCode;
using fuse::Origin;
using fuse::Program;
using fuse::Rate;
using fuse::SlotInfo;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();

using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

constexpr SlotInfo elements_f32 = {DType::float32, Rate::element};
constexpr SlotInfo elements_f64 = {DType::float64, Rate::element};
constexpr SlotInfo entries_f32 = {DType::float32, Rate::entry};
constexpr SlotInfo entries_f64 = {DType::float64, Rate::entry};

ValueId apply(Program& p, OpCode op, std::initializer_list<ValueId> in) {
  return p.apply(op, std::vector<ValueId>(in), here);
}

// A program over up to four lists, so that two can be made alike.
struct Setup {
  explicit Setup(SlotInfo first = elements_f32) {
    a = program.slot(list_a.view(), first);
    b = program.slot(list_b.view(), elements_f32);
  }
  Floats list_a = Floats::zeros("a", {3, 2});
  Floats list_b = Floats::zeros("b", {3, 2});
  Program program;
  std::int32_t a = -1;
  std::int32_t b = -1;
};

}  // namespace

TEST_CASE("a list has one slot, found again among many") {
  Program program;
  std::vector<Floats> lists;
  for (int i = 0; i < 200; ++i) lists.push_back(Floats::zeros("list", {1}));
  for (int i = 0; i < 200; ++i) {
    CHECK(program.slot(lists[std::size_t(i)].view(), elements_f32) == i);
  }
  for (int i = 199; i >= 0; --i) {
    CHECK(program.slot(lists[std::size_t(i)].view(), elements_f32) == i);
  }
  CHECK(program.slots().size() == 200);
  CHECK(program.lists()[7].id == lists[7].view().id);
  program.clear();
  CHECK(program.slots().empty());
  CHECK(program.slot(lists[150].view(), elements_f32) == 0);
  CHECK(program.slot(lists[7].view(), elements_f32) == 1);
}

TEST_CASE("loads and stores are forwarded") {
  Setup s;
  Program& p = s.program;
  const ValueId first = p.load(s.a, here);
  CHECK(p.load(s.a, here) == first);
  CHECK(p.nodes().size() == 1);
  CHECK(p.node(first).op == OpCode::load);
  CHECK(p.node(first).in[0] == s.a);

  const ValueId sum = apply(p, OpCode::add, {first, p.load(s.b, here)});
  p.store(s.a, sum, here);
  CHECK(p.load(s.a, here) == sum);
  // A second store replaces the first one; old values stay what they were.
  const ValueId twice = apply(p, OpCode::mul, {sum, first});
  p.store(s.a, twice, here);
  REQUIRE(p.stores().size() == 1);
  CHECK(p.stores()[0].slot == s.a);
  CHECK(p.stores()[0].value == twice);
  CHECK(p.node(twice).in[1] == first);
  CHECK(p.load(s.a, here) == twice);
}

TEST_CASE("reads and first stores keep their positions") {
  Setup s;
  Program& p = s.program;
  CHECK(p.last_read(s.a) == -1);
  CHECK(p.first_store(s.a) == -1);
  const ValueId a = p.load(s.a, here);
  CHECK(p.last_read(s.a) == 0);
  const ValueId root = apply(p, OpCode::sqrt, {a});
  p.store(s.b, root, here);
  CHECK(p.first_store(s.b) == 2);
  apply(p, OpCode::exp, {p.load(s.a, here)});
  CHECK(p.last_read(s.a) == 2);
  p.store(s.b, apply(p, OpCode::neg, {root}), here);
  CHECK(p.first_store(s.b) == 2);
  CHECK(p.last_read(s.b) == -1);
}

TEST_CASE("rates and dtypes of results") {
  Program p;
  Floats floats = Floats::zeros("floats", {3});
  Doubles doubles = Doubles::zeros("doubles", {3});
  Floats steps = Floats::zeros("steps", {1});
  const ValueId f = p.load(p.slot(floats.view(), elements_f32), here);
  const ValueId d = p.load(p.slot(doubles.view(), elements_f64), here);
  const ValueId e = p.load(p.slot(steps.view(), entries_f32), here);
  const ValueId c = p.constant(2, {});
  const ValueId g = p.argument(3, {});

  CHECK(p.node(f).rate == Rate::element);
  CHECK(p.node(f).dtype == DType::float32);
  // Per-tensor scalars are float64 whatever their storage.
  CHECK(p.node(e).rate == Rate::entry);
  CHECK(p.node(e).dtype == DType::float64);
  CHECK(p.node(c).op == OpCode::constant);
  CHECK(p.node(g).op == OpCode::argument);
  CHECK(p.node(g).rate == Rate::uniform);
  CHECK(p.scalars()[1].value == 3);

  const Node uniform = p.node(apply(p, OpCode::mul, {c, g}));
  CHECK(uniform.rate == Rate::uniform);
  CHECK(uniform.dtype == DType::float64);
  const Node entry = p.node(apply(p, OpCode::pow, {c, e}));
  CHECK(entry.rate == Rate::entry);
  CHECK(entry.dtype == DType::float64);
  const Node single = p.node(apply(p, OpCode::add_scaled, {f, e, c}));
  CHECK(single.rate == Rate::element);
  CHECK(single.dtype == DType::float32);
  CHECK(single.arity == 3);
  const Node wide = p.node(apply(p, OpCode::mul, {e, d}));
  CHECK(wide.rate == Rate::element);
  CHECK(wide.dtype == DType::float64);
}

TEST_CASE("elements of several dtypes are cast to one") {
  Program p;
  Floats floats = Floats::zeros("floats", {3});
  Doubles doubles = Doubles::zeros("doubles", {3});
  const ValueId f = p.load(p.slot(floats.view(), elements_f32), here);
  const ValueId d = p.load(p.slot(doubles.view(), elements_f64), here);
  const ValueId c = p.constant(1, {});
  const Node node = p.node(apply(p, OpCode::addcmul, {f, f, d, c}));
  CHECK(node.dtype == DType::float64);
  for (const int k : {0, 1}) {
    const Node& cast = p.node(node.in[k]);
    CHECK(cast.op == OpCode::cast);
    CHECK(cast.rate == Rate::element);
    CHECK(cast.dtype == DType::float64);
    CHECK(cast.in[0] == f);
    CHECK(p.domain(node.in[k]) == p.domain(d));
  }
  CHECK(node.in[2] == d);
  CHECK(node.in[3] == c);
}

TEST_CASE("a store converts to the dtype and rate of its list") {
  Program p;
  Floats floats = Floats::zeros("floats", {3});
  Doubles doubles = Doubles::zeros("doubles", {3});
  Floats float_steps = Floats::zeros("float_steps", {1});
  Doubles double_steps = Doubles::zeros("double_steps", {1});
  const auto f = p.slot(floats.view(), elements_f32);
  const auto d = p.slot(doubles.view(), elements_f64);
  const auto sf = p.slot(float_steps.view(), entries_f32);
  const auto sd = p.slot(double_steps.view(), entries_f64);
  const ValueId entry = apply(p, OpCode::neg, {p.load(sd, here)});
  const ValueId uniform = p.constant(0.1, {});

  struct Row {
    std::int32_t slot;
    ValueId value;
    OpCode op;  // of the value that is stored in the end
    Rate rate;
    DType dtype;
  };
  const ValueId single = apply(p, OpCode::neg, {p.load(f, here)});
  const ValueId wide = apply(p, OpCode::neg, {p.load(d, here)});
  for (const Row& row : std::vector<Row>{
           {f, single, OpCode::neg, Rate::element, DType::float32},
           {f, wide, OpCode::cast, Rate::element, DType::float32},
           {f, entry, OpCode::fill, Rate::element, DType::float32},
           {f, uniform, OpCode::fill, Rate::element, DType::float32},
           {d, wide, OpCode::neg, Rate::element, DType::float64},
           {d, single, OpCode::cast, Rate::element, DType::float64},
           {d, uniform, OpCode::fill, Rate::element, DType::float64},
           {sd, entry, OpCode::neg, Rate::entry, DType::float64},
           {sd, uniform, OpCode::fill, Rate::entry, DType::float64},
           {sf, entry, OpCode::cast, Rate::entry, DType::float32},
           {sf, uniform, OpCode::cast, Rate::entry, DType::float32}}) {
    p.store(row.slot, row.value, here);
    const ValueId stored = p.load(row.slot, here);
    CHECK(p.node(stored).op == row.op);
    CHECK(p.node(stored).rate == row.rate);
    CHECK(p.node(stored).dtype == row.dtype);
    if (stored != row.value) CHECK(p.node(stored).in[0] == row.value);
  }

  const std::string message =
      message_of<Error>([&] { p.store(sd, single, here); });
  CHECK(contains(message, "elements cannot be stored"));
  CHECK(contains(message, "program_test.cpp"));
  CHECK_THROWS_AS(p.convert_like(single, entries_f64, entry, here), Error);
}

TEST_CASE("what meets in an operation shares a domain") {
  Program p;
  std::vector<Floats> lists;
  std::vector<std::int32_t> slots;
  std::vector<ValueId> loads;
  for (int i = 0; i < 6; ++i) {
    lists.push_back(Floats::zeros("list", {2, 2}));
    slots.push_back(p.slot(lists.back().view(), elements_f32));
    loads.push_back(p.load(slots.back(), here));
  }
  const auto same = [&](std::size_t i, std::size_t k) {
    return p.domain(loads[i]) == p.domain(loads[k]);
  };
  const ValueId number = p.constant(1, {});
  CHECK(p.domain(number) == -1);
  const ValueId left = apply(p, OpCode::add, {loads[0], loads[1]});
  const ValueId right = apply(p, OpCode::add, {loads[2], loads[3]});
  apply(p, OpCode::add, {number, loads[4]});
  CHECK(same(0, 1));
  CHECK(same(2, 3));
  CHECK_FALSE(same(0, 2));
  CHECK_FALSE(same(4, 5));
  CHECK(p.domain(left) == p.domain(loads[0]));
  // A store joins as well, and so do all that were joined before.
  p.store(slots[3], left, here);
  CHECK(same(1, 2));
  CHECK(p.domain(right) == p.domain(left));
  p.store(slots[5], number, here);
  CHECK(p.domain(p.load(slots[5], here)) == p.domain(loads[5]));
  CHECK_FALSE(same(5, 0));
}

TEST_CASE("structure: every field counts, scalar values do not") {
  using Build = std::function<void(Setup&)>;
  const auto standard = [](Setup& s) {
    Program& p = s.program;
    const ValueId sum =
        apply(p, OpCode::add_scaled,
              {p.load(s.a, here), p.load(s.b, here), p.constant(2, {})});
    p.store(s.a, sum, here);
  };
  Setup model;
  standard(model);
  const auto is_like_model = [&](const Setup& s) {
    const bool same = model.program.same_structure(s.program);
    CHECK(s.program.same_structure(model.program) == same);
    const bool hashes =
        model.program.structure_hash() == s.program.structure_hash();
    CHECK(hashes == same);
    return same;
  };

  SUBCASE("other lists, other numbers: the same") {
    Setup s;
    Program& p = s.program;
    p.store(s.a,
            apply(p, OpCode::add_scaled,
                  {p.load(s.a, here), p.load(s.b, here),
                   p.constant(-7, {.name = "lr"})}),
            here);
    CHECK(is_like_model(s));
  }
  SUBCASE("cleared and recorded again: the same") {
    Setup s;
    standard(s);
    s.program.store(s.b, s.program.load(s.a, here), here);
    CHECK_FALSE(is_like_model(s));
    s.program.clear();
    CHECK(s.program.empty());
    s.a = s.program.slot(s.list_a.view(), elements_f32);
    s.b = s.program.slot(s.list_b.view(), elements_f32);
    standard(s);
    CHECK(is_like_model(s));
  }
  SUBCASE("everything else: different") {
    const std::vector<Build> others = {
        // The operation.
        [](Setup& s) {
          Program& p = s.program;
          p.store(
              s.a,
              apply(p, OpCode::sub_scaled,
                    {p.load(s.a, here), p.load(s.b, here), p.constant(2, {})}),
              here);
        },
        // The order of operands.
        [](Setup& s) {
          Program& p = s.program;
          const ValueId a = p.load(s.a, here);
          const ValueId b = p.load(s.b, here);
          p.store(s.a, apply(p, OpCode::add_scaled, {b, a, p.constant(2, {})}),
                  here);
        },
        // An argument for a constant.
        [](Setup& s) {
          Program& p = s.program;
          p.store(
              s.a,
              apply(p, OpCode::add_scaled,
                    {p.load(s.a, here), p.load(s.b, here), p.argument(2, {})}),
              here);
        },
        // The list that is stored.
        [](Setup& s) {
          Program& p = s.program;
          p.store(
              s.b,
              apply(p, OpCode::add_scaled,
                    {p.load(s.a, here), p.load(s.b, here), p.constant(2, {})}),
              here);
        },
        // The value that is stored.
        [&](Setup& s) {
          standard(s);
          s.program.store(s.a, 0, here);
        },
        // One store more.
        [&](Setup& s) {
          standard(s);
          s.program.store(s.b, s.program.load(s.a, here), here);
        },
        // One slot more.
        [&](Setup& s) {
          standard(s);
          s.program.slot(Floats::zeros("more", {3, 2}).view(), elements_f32);
        },
        // One node more.
        [&](Setup& s) {
          standard(s);
          s.program.constant(1, {});
        },
    };
    for (const Build& build : others) {
      Setup s;
      build(s);
      CHECK_FALSE(is_like_model(s));
    }
    // dtype and rate of a slot.
    for (const SlotInfo info : {elements_f64, entries_f32}) {
      Setup s(info);
      Setup plain;
      s.program.constant(1, {});
      plain.program.constant(1, {});
      CHECK_FALSE(s.program.same_structure(plain.program));
      CHECK(s.program.structure_hash() != plain.program.structure_hash());
    }
  }
}

TEST_CASE("structure: when a list was first stored counts") {
  // The same nodes and stores; but the first program stores b before a is read
  // for the last time, which matters when a and b are the same memory.
  const auto record = [](Setup& s, bool early) {
    Program& p = s.program;
    const ValueId root = apply(p, OpCode::sqrt, {p.load(s.a, here)});
    if (early) p.store(s.b, root, here);
    const ValueId sum = apply(p, OpCode::add, {root, p.load(s.a, here)});
    p.store(s.b, sum, here);
  };
  Setup early;
  Setup late;
  Setup late_again;
  record(early, true);
  record(late, false);
  record(late_again, false);
  CHECK_FALSE(early.program.same_structure(late.program));
  CHECK(late.program.same_structure(late_again.program));
}

TEST_CASE("origins") {
  CHECK(to_string(Origin{.name = "lr", .group = 2}) ==
        "param_groups[2][\"lr\"]");
  CHECK(to_string(Origin{.name = "lr"}) == "param_groups[0][\"lr\"]");
  CHECK(to_string(Origin{.name = "betas", .index = 1, .group = 0}) ==
        "param_groups[0][\"betas\"][1]");
  CHECK(contains(to_string(Origin{.place = here}),
                 "program_test.cpp:" + std::to_string(here.line())));
  const Origin lr = {.name = "lr", .group = 1};
  CHECK(same_parameter(lr, {.name = "lr", .group = 5}));
  CHECK_FALSE(same_parameter(lr, {.name = "eps", .group = 1}));
  CHECK_FALSE(same_parameter(lr, {.name = "lr", .index = 0}));
  CHECK_FALSE(same_parameter(lr, {}));
  const auto there = std::source_location::current();
  CHECK(fuse::same_parameter({.place = here}, {.place = here}));
  CHECK_FALSE(fuse::same_parameter({.place = here}, {.place = there}));
}
