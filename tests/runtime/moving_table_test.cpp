// Tables whose tensors move from step to step: new gradients, memory of others.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "fusebook/runtime/launch_table.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::Error;
using fuse::i64;
using fuse::ListView;
using fuse::OpCode;
using fuse::Plan;
using fuse::Program;
using fuse::Rate;
using fuse::SlotInfo;
using fuse::Table;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();

bool never(const fuse::Origin&) { return false; }

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// A list whose tensors can be put elsewhere; nobody ever follows the addresses.
struct Movable {
  Movable(const char* name, std::vector<std::int64_t> counts,
          Rate of_rate = Rate::element)
      : label(name),
        numels(std::move(counts)),
        addresses(numels.size(), at(4096)),
        rate(of_rate),
        id(next_list_id()) {}

  // As matrices of two columns, each column `apart` elements long.
  void make_strided(std::int64_t apart) {
    sizes.clear();
    strides.clear();
    for (const std::int64_t n : numels) {
      sizes.push_back({n / 2, 2});
      strides.push_back({1, apart});
    }
    id = next_list_id();
  }
  void put(std::size_t e, std::uintptr_t address) {
    addresses[e] = at(address);
    id = next_list_id();
  }
  // Side by side from an address on.
  void put_all(std::uintptr_t address, std::uintptr_t apart = 4096) {
    for (std::size_t e = 0; e < numels.size(); ++e) {
      put(e, address + e * apart);
    }
  }
  ListView view() const {
    layouts.clear();
    for (std::size_t e = 0; e < sizes.size(); ++e) {
      layouts.push_back({sizes[e].data(), strides[e].data(), 2});
    }
    return {.id = id,
            .addresses = addresses.data(),
            .numels = numels.data(),
            .count = numels.size(),
            .label = label,
            .layouts = layouts.empty() ? nullptr : layouts.data()};
  }
  SlotInfo info() const {
    const bool number = rate != Rate::element;
    return {number ? DType::float64 : DType::float32, rate};
  }

  const char* label;
  std::vector<std::int64_t> numels;
  std::vector<void*> addresses;
  Rate rate;
  std::uint64_t id;
  std::vector<std::array<std::int64_t, 2>> sizes;
  std::vector<std::array<std::int64_t, 2>> strides;
  mutable std::vector<fuse::Layout> layouts;  // of this copy
};

// params -= number * grads * steps; steps += 1
struct Step {
  explicit Step(const std::vector<std::int64_t>& sizes)
      : params("params", sizes),
        grads("grads", sizes),
        steps("steps", std::vector<std::int64_t>(sizes.size(), 1),
              Rate::entry) {
    params.put_all(1 << 24, 1 << 16);
    grads.put_all(1 << 26, 1 << 16);
    steps.put_all(1 << 28, 8);
    number.put(0, 1 << 29);
  }

  Program program() const {
    Program p;
    const auto load = [&](const Movable& list) {
      return p.load(p.slot(list.view(), list.info()), here);
    };
    const auto apply = [&](OpCode op, std::vector<ValueId> in) {
      return p.apply(op, in, here);
    };
    const ValueId scaled = apply(OpCode::mul, {load(grads), load(steps)});
    const ValueId update = apply(OpCode::mul, {scaled, load(number)});
    p.store(p.slot(params.view(), params.info()),
            apply(OpCode::sub, {load(params), update}), here);
    p.store(p.slot(steps.view(), steps.info()),
            apply(OpCode::add, {load(steps), p.constant(1, {})}), here);
    return p;
  }

  Movable params;
  Movable grads;
  Movable steps;
  Movable number{"number", {1}, Rate::uniform};
};

Plan plan_of(const Program& p) { return make_plan(p, never); }

bool bind(Table& table, const Step& step, int threads = 1) {
  const Program p = step.program();
  return table.bind(plan_of(p), p, threads);
}

std::string error_of(Table& table, const Step& step) {
  return message_of<Error>([&] { bind(table, step); });
}

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  const auto left = std::as_bytes(a);
  const auto right = std::as_bytes(b);
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

// All that a kernel sees of two tables.
bool same_content(const Table& a, const Table& b) {
  return same_bytes(a.rows(), b.rows()) &&
         same_bytes(a.pointers(), b.pointers()) &&
         same_bytes(a.strides(), b.strides()) &&
         same_bytes(a.parts(), b.parts()) &&
         same_bytes(a.split_rows(), b.split_rows()) && a.bytes() == b.bytes() &&
         a.coincident() == b.coincident();
}

Table from_scratch(const Step& step, int threads = 1) {
  Table table;
  bind(table, step, threads);
  return table;
}

}  // namespace

TEST_CASE("gradients at new addresses are put into the table that is there") {
  Step step({100, 0, 16000, 7});
  Table table;
  CHECK(bind(table, step, 2));
  for (int i = 1; i < 5; ++i) {
    const std::uint64_t before = table.version();
    step.grads.put_all((1 << 26) + std::uintptr_t(i) * 4096, 1 << 20);
    CHECK(bind(table, step, 2));
    CHECK(table.moved_from() == before);
    CHECK(table.version() != before);
    CHECK(same_content(table, from_scratch(step, 2)));
    CHECK_FALSE(bind(table, step, 2));
  }
}

TEST_CASE("the span of what has moved holds nothing else") {
  Step step({8, 8, 8, 8});
  Table table;
  bind(table, step);
  step.grads.put(2, 1 << 27);
  bind(table, step);
  CHECK(table.moved().end - table.moved().begin == 1);
  CHECK(table.pointers()[table.moved().begin] == at(1 << 27));
  step.grads.put(0, (1 << 27) + 4096);
  step.grads.put(3, (1 << 27) + 8192);
  bind(table, step);
  CHECK(table.pointers()[table.moved().begin] == at((1 << 27) + 4096));
  CHECK(table.pointers()[table.moved().end - 1] == at((1 << 27) + 8192));
  // A table of other lists is no move.
  Step other({8, 8});
  bind(table, other);
  CHECK(table.moved_from() == 0);
}

TEST_CASE("stored tensors, per-tensor numbers and numbers for all move too") {
  Step step({100, 50, 9});
  Table table;
  bind(table, step);
  step.params.put(1, 1 << 25);
  bind(table, step);
  CHECK(same_content(table, from_scratch(step)));
  step.steps.put_all((1 << 28) + 4096, 64);
  bind(table, step);
  CHECK(same_content(table, from_scratch(step)));
  step.number.put(0, (1 << 29) + 8);
  bind(table, step);
  CHECK(same_content(table, from_scratch(step)));
  CHECK(table.moved_from() != 0);
}

TEST_CASE("lines of strided tensors move with their tensor") {
  Step step({20, 0, 40});
  step.grads.make_strided(30);
  step.params.make_strided(25);
  Table table;
  bind(table, step);
  REQUIRE(table.rows().size() > 3);
  step.grads.put_all(1 << 27);
  CHECK(bind(table, step));
  CHECK(table.moved_from() != 0);
  CHECK(same_content(table, from_scratch(step)));
  step.params.put(2, 1 << 25);
  CHECK(bind(table, step));
  CHECK(same_content(table, from_scratch(step)));
  // Other strides are another table.
  step.grads.make_strided(31);
  CHECK(bind(table, step));
  CHECK(table.moved_from() == 0);
  CHECK(same_content(table, from_scratch(step)));
}

TEST_CASE("sets that take turns are found again") {
  Step step({100, 50});
  Table table;
  const auto use = [&](int set) {
    step.grads.put_all((1 << 26) + (std::uintptr_t(set) << 20), 1 << 16);
    return bind(table, step);
  };
  const auto rounds = [&](int sets) {
    std::vector<bool> built;
    for (int i = 0; i < 6 * sets; ++i) {
      built.push_back(use(i % sets));
      REQUIRE(same_content(table, from_scratch(step)));
    }
    return built;
  };
  for (const int sets : {2, 3, 4}) {
    const std::vector<bool> built = rounds(sets);
    CAPTURE(sets);
    // Seen once, then known to come back, then there.
    CHECK(std::none_of(built.begin() + 3 * sets, built.end(),
                       [](bool was_built) { return was_built; }));
  }
  // Five are too many: always the one used longest ago is needed.
  rounds(5);
  // What never comes back costs the others nothing.
  table = Table();
  rounds(2);
  for (int set = 100; set < 120; ++set) CHECK(use(set));
  CHECK_FALSE(use(0));
  CHECK(same_content(table, from_scratch(step)));
}

TEST_CASE(
    "lists that take turns, each time elsewhere, are put into their tables") {
  Step all({100, 50, 70});
  Step some({100, 70});
  Table table;
  bind(table, all);
  bind(table, some);
  for (int i = 1; i < 12; ++i) {
    Step& step = i % 2 == 0 ? some : all;
    step.grads.put_all((1 << 26) + std::uintptr_t(i) * 4096, 1 << 20);
    CHECK(bind(table, step));
    CHECK(table.moved_from() != 0);
    REQUIRE(same_content(table, from_scratch(step)));
  }
  // Three more are too many for what was used longest ago.
  bind(table, Step({1}));
  bind(table, Step({2}));
  bind(table, Step({3}));
  some.grads.put(0, 1 << 27);
  bind(table, some);
  CHECK(table.moved_from() == 0);
  CHECK(same_content(table, from_scratch(some)));
}

TEST_CASE("other sizes and numbers of threads take turns, too") {
  Step one({100, 50000});
  Step two({3});
  Table table;
  int built = 0;
  for (int i = 0; i < 20; ++i) {
    const Step& step = i % 2 == 0 ? one : two;
    const int threads = 1 + i / 2 % 2;
    built += int(bind(table, step, threads));
    REQUIRE(same_content(table, from_scratch(step, threads)));
  }
  CHECK(built <= 8);
}

TEST_CASE("overlap that appears in a tensor that moved") {
  Step step({100, 50});
  Table table;
  bind(table, step);
  const Step good = step;
  SUBCASE("with a stored tensor that stays") {
    step.grads.put(1, (1 << 24) + 4);
    CHECK(contains(error_of(table, step),
                   "params[0] is stored but overlaps grads[1]"));
  }
  SUBCASE("with per-tensor numbers that stay") {
    step.grads.put(1, (1 << 28) - 100);
    CHECK(contains(error_of(table, step),
                   "steps[0] is stored but overlaps grads[1]"));
  }
  SUBCASE("of a stored tensor with one that is read") {
    step.params.put(0, (1 << 26) + 396);
    CHECK(contains(error_of(table, step),
                   "params[0] is stored but overlaps grads[0]"));
  }
  SUBCASE("of stored tensors with each other") {
    step.params.put_all(1 << 25, 200);
    CHECK(contains(error_of(table, step),
                   "params[0] is stored but overlaps params[1]"));
  }
  SUBCASE("of tensors that moved in two lists") {
    step.params.put(0, 1 << 25);
    step.grads.put(1, (1 << 25) + 399);
    CHECK(contains(error_of(table, step),
                   "params[0] is stored but overlaps grads[1]"));
  }
  // Each time, and the table that was there is as it was.
  CHECK(error_of(table, step) != "no error");
  CHECK(bind(table, good) == false);
  CHECK(same_content(table, from_scratch(good)));
  step.params.put_all(1 << 24, 1 << 16);
  step.grads.put_all(1 << 27, 1 << 16);
  CHECK(error_of(table, step) == "no error");
  CHECK(same_content(table, from_scratch(step)));
}

TEST_CASE("gradients that become the parameters, and no longer are") {
  Step step({100, 50});
  Table table;
  bind(table, step);
  CHECK_FALSE(table.coincident());
  step.grads.addresses = step.params.addresses;
  step.grads.id = next_list_id();
  bind(table, step);
  CHECK(table.coincident());
  CHECK(same_content(table, from_scratch(step)));
  step.grads.put(0, 1 << 27);
  bind(table, step);
  CHECK(table.coincident());
  step.grads.put(1, 1 << 26);
  bind(table, step);
  CHECK_FALSE(table.coincident());
  CHECK(same_content(table, from_scratch(step)));
}

// Small memory, so that tensors often meet.
TEST_CASE("random moves: the same table, or error, as from scratch") {
  int moved = 0;
  int refused = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    std::vector<std::int64_t> sizes(std::size_t(1 + random.below(6)));
    for (std::int64_t& n : sizes) n = 2 * random.below(8);
    Step step(sizes);
    if (random.chance(0.3)) step.grads.make_strided(8 + random.below(4));
    if (random.chance(0.3)) step.params.make_strided(8 + random.below(4));
    const int space = 200 << random.below(12);
    const std::vector<Movable*> lists = {&step.grads, &step.grads,
                                         &step.grads, &step.params,
                                         &step.steps, &step.number};
    Table table;
    Step last = step;
    for (int i = 0; i < 30; ++i) {
      const Step before = step;
      if (random.chance(0.2))
        std::swap(step.grads.addresses, last.grads.addresses);
      for (int k = random.below(4); k > 0; --k) {
        Movable& list = *random.pick(lists);
        const auto e = std::size_t(random.below(int(list.numels.size())));
        list.put(e, 65536 + random.bits() % std::uint64_t(space));
      }
      step.grads.id = next_list_id();
      if (random.chance(0.2)) last = before;
      const int threads = 1 + random.below(2);
      Table fresh;
      const auto message = [&](Table& to) {
        return message_of<Error>([&] { bind(to, step, threads); });
      };
      const std::uint64_t version = table.version();
      const std::string expected = message(fresh);
      INFO("seed " << seed << " step " << i);
      REQUIRE(message(table) == expected);
      if (expected != "no error") {
        ++refused;
        continue;
      }
      REQUIRE(same_content(table, fresh));
      moved += int(version != 0 && table.moved_from() == version);
      found += int(table.version() != version && table.moved_from() != version);
    }
  }
  CHECK(moved > 2000);
  CHECK(refused > 1000);
  CHECK(found > 500);
}
