#include "fusebook/runtime/launch_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <string>
#include <vector>

#include "fusebook/prelude/cpu_loops.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace testing;
using fuse::DType;
using fuse::Error;
using fuse::i64;
using fuse::OpCode;
using fuse::Part;
using fuse::Plan;
using fuse::Program;
using fuse::Rate;
using fuse::Row;
using fuse::Table;
using fuse::ValueId;

namespace {

const auto here = std::source_location::current();
using Floats = MemoryList<float>;
using Doubles = MemoryList<double>;

bool always(const fuse::Origin&) { return true; }

ValueId apply(Program& p, OpCode op, std::initializer_list<ValueId> in) {
  return p.apply(op, std::vector<ValueId>(in), here);
}

// Addresses that nobody ever follows: tables can be made for any sizes.
std::vector<void*> addresses_for(const std::vector<std::int64_t>& sizes) {
  static std::uintptr_t next = 4096;
  std::vector<void*> addresses;
  for (const std::int64_t n : sizes) {
    addresses.push_back(reinterpret_cast<void*>(next));
    next += std::uintptr_t(n) * 8 + 8;
  }
  return addresses;
}

Floats fake(const char* label, const std::vector<std::int64_t>& sizes) {
  return Floats(label, addresses_for(sizes), sizes);
}

void negate(Program& p, const Floats& list) {
  const auto slot = p.slot(list.view(), list.info());
  p.store(slot, apply(p, OpCode::neg, {p.load(slot, here)}), here);
}

// A table over tensors of the given sizes.
Table table_of(const std::vector<std::int64_t>& sizes, int threads) {
  Program p;
  const Floats list = fake("list", sizes);
  negate(p, list);
  Table table;
  CHECK(table.bind(make_plan(p, always), p, threads));
  return table;
}

struct Share {
  i64 begin;
  i64 end;
};

// For each row, what the parts do to it.
std::vector<std::vector<Share>> shares_of(const Table& table) {
  std::vector<std::vector<Share>> shares(table.rows().size());
  for (const Part& part : table.parts()) {
    REQUIRE(part.row <= part.last_row);
    for (i64 r = part.row; r <= part.last_row; ++r) {
      const i64 numel = table.rows()[std::size_t(r)].numel;
      shares[std::size_t(r)].push_back({r == part.row ? part.begin : 0,
                                        r == part.last_row ? part.end : numel});
    }
  }
  return shares;
}

// Every element exactly once; every row whole in one part, or split and listed.
void check_partition(const Table& table) {
  const auto shares = shares_of(table);
  std::vector<i64> split;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const i64 numel = table.rows()[r].numel;
    REQUIRE(!shares[r].empty());
    i64 next = 0;
    for (const Share& share : shares[r]) {
      REQUIRE(share.begin == next);
      REQUIRE((share.end > share.begin || numel == 0));
      next = share.end;
    }
    REQUIRE(next == numel);
    if (shares[r].size() > 1) split.push_back(i64(r));
  }
  REQUIRE(std::vector<i64>(table.split_rows().begin(),
                           table.split_rows().end()) == split);
}

i64 weight(const Table& table, const Part& part) {
  i64 sum = 0;
  for (i64 r = part.row; r <= part.last_row; ++r) {
    const i64 numel = table.rows()[std::size_t(r)].numel;
    const i64 end = r == part.last_row ? part.end : numel;
    sum += end - (r == part.row ? part.begin : 0);
    if (end == numel) sum += 64;  // what a row costs beside its elements
  }
  return sum;
}

void check_balance(const Table& table, int threads) {
  i64 total = 0;
  for (const Row& row : table.rows()) total += row.numel + 64;
  const i64 used = std::clamp<i64>(total / 16384, 1, threads);
  // Large shares are cut again, the same number for every thread.
  const i64 cuts = used == 1 ? 1 : std::clamp<i64>(total / used / 262144, 1, 8);
  const i64 parts = used * cuts;
  REQUIRE(i64(table.parts().size()) == parts);
  for (const Part& part : table.parts()) {
    // A grain of 2048 elements, the cost of a row, and rounding.
    REQUIRE(std::abs(weight(table, part) - total / parts) <= 2048 + 64 + 1);
  }
}

std::vector<std::int64_t> random_sizes(Random& random) {
  std::vector<std::int64_t> sizes(std::size_t(random.below(60)));
  const int kind = random.below(4);
  for (std::int64_t& n : sizes) {
    const int size = random.below(8);
    if (kind == 0) {
      n = random.below(3);
    } else if (size < 2) {
      n = 1024 * random.below(100);
    } else if (size < 4) {
      n = random.below(200000);
    } else {
      n = random.below(kind == 1 ? 100 : 5000);
    }
  }
  return sizes;
}

}  // namespace

TEST_CASE("the parts are a balanced partition") {
  Random random(1);
  int split = 0;
  int most = 0;
  for (int n = 0; n < 3000; ++n) {
    const int threads = 1 + random.below(64);
    const Table table = table_of(random_sizes(random), threads);
    if (table.rows().empty()) {
      REQUIRE(table.parts().empty());
      continue;
    }
    check_partition(table);
    check_balance(table, threads);
    split += int(!table.split_rows().empty());
    most = std::max(most, int(table.parts().size()));
  }
  CHECK(split > 500);
  CHECK(most > 50);
}

TEST_CASE("partitions at the edges") {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {0},
           {1},
           {0, 0, 0},
           {1 << 20},
           {1 << 22, 100, 1 << 21},
           {0, 1 << 20, 0},
           {16384, 16384, 16384, 16384},
           {16320, 16320, 16320},
           {1, 1 << 18, 1},
           {32768 - 64, 0, 0, 32768 - 64, 0},
           std::vector<std::int64_t>(10000, 1),
           std::vector<std::int64_t>(5000, 0)}) {
    for (int threads = 1; threads <= 64; ++threads) {
      const Table table = table_of(sizes, threads);
      check_partition(table);
      check_balance(table, threads);
    }
  }
  CHECK(table_of({}, 4).parts().empty());
  // Little work stays on one thread.
  CHECK(table_of({20000, 1000}, 8).parts().size() == 1);
  CHECK(table_of({40000}, 8).parts().size() == 2);
  CHECK(table_of({1 << 18}, 2).parts().size() == 2);
  CHECK(table_of({1 << 20}, 2).parts().size() == 4);
  CHECK(table_of({3 << 20}, 2).parts().size() == 12);
  CHECK(table_of({1 << 24}, 2).parts().size() == 16);
  CHECK(table_of({1 << 24}, 1).parts().size() == 1);
  // Sizes beyond 32 bits.
  const Table huge = table_of({i64(1) << 36, 5}, 3);
  check_partition(huge);
  check_balance(huge, 3);
}

TEST_CASE("kernels visit what the parts say") {
  Random random(2);
  for (int n = 0; n < 200; ++n) {
    const Table table = table_of(random_sizes(random), 1 + random.below(64));
    std::vector<std::vector<Share>> visited(table.rows().size());
    std::vector<int> whole(table.rows().size());
    const fuse::Launch launch = table.launch();
    for (const Part& part : table.parts()) {
      fuse::device::for_each_row(
          launch, part, [&](const Row& row, i64 begin, i64 end, bool is_whole) {
            const auto r = std::size_t(&row - launch.rows);
            visited[r].push_back({begin, end});
            whole[r] += int(is_whole);
          });
    }
    const auto expected = shares_of(table);
    for (std::size_t r = 0; r < visited.size(); ++r) {
      REQUIRE(visited[r].size() == expected[r].size());
      for (std::size_t k = 0; k < visited[r].size(); ++k) {
        REQUIRE(visited[r][k].begin == expected[r][k].begin);
        REQUIRE(visited[r][k].end == expected[r][k].end);
      }
      // Its per-tensor stores happen once: here, or for the split rows later.
      const auto split = table.split_rows();
      REQUIRE(whole[r] + std::count(split.begin(), split.end(), i64(r)) == 1);
    }
  }
}

TEST_CASE("rows point to their tensors in every list") {
  Program p;
  const std::vector<std::int64_t> sizes = {4, 0, 7};
  Doubles steps = Doubles::zeros("steps", {1, 1, 1});
  Floats params = Floats::zeros("params", sizes);
  Floats grads = Floats::zeros("grads", sizes);
  // The first slot is a list of per-tensor scalars; sizes come from others.
  const auto s = p.slot(steps.view(), steps.info(Rate::entry));
  const auto a = p.slot(params.view(), params.info());
  const auto b = p.slot(grads.view(), grads.info());
  p.store(s, apply(p, OpCode::add, {p.load(s, here), p.constant(1, {})}), here);
  p.store(a,
          apply(p, OpCode::add_scaled,
                {p.load(a, here), p.load(b, here), p.load(s, here)}),
          here);
  Table table;
  table.bind(make_plan(p, always), p, 1);
  REQUIRE(table.rows().size() == 3);
  const fuse::Launch launch = table.launch();
  for (std::size_t e = 0; e < 3; ++e) {
    const Row& row = table.rows()[e];
    CHECK(row.numel == sizes[e]);
    CHECK(row.body == 0);
    CHECK(row.instance == 0);
    void* const* const at = launch.pointers + row.pointers;
    CHECK(at[0] == steps[e].data());
    CHECK(at[1] == params[e].data());
    CHECK(at[2] == grads[e].data());
  }
  // 11 elements of 4 bytes, loaded from two lists and stored into one, and
  // three step counts, loaded and stored.
  CHECK(table.bytes() == 11 * 12 + 3 * 16);
  CHECK_FALSE(table.coincident());
}

TEST_CASE("lists of per-tensor scalars alone have rows without elements") {
  Program p;
  Doubles steps = Doubles::zeros("steps", {1, 1});
  const auto s = p.slot(steps.view(), steps.info(Rate::entry));
  p.store(s, apply(p, OpCode::neg, {p.load(s, here)}), here);
  Table table;
  table.bind(make_plan(p, always), p, 2);
  REQUIRE(table.rows().size() == 2);
  CHECK(table.rows()[0].numel == 0);
  CHECK(table.bytes() == 32);
  check_partition(table);
}

TEST_CASE("groups have their own rows and columns") {
  Program p;
  std::vector<Floats> lists;
  for (int g = 0; g < 3; ++g) lists.push_back(fake("params", {2, 3}));
  for (int g = 0; g < 3; ++g) {
    const auto slot =
        p.slot(lists[std::size_t(g)].view(), {DType::float32, Rate::element});
    const ValueId lr = p.argument(g + 0.5, {});
    const ValueId eps = p.argument(10 * g, {});
    const ValueId scaled = apply(p, OpCode::mul, {p.load(slot, here), lr});
    p.store(slot, apply(p, OpCode::add, {scaled, eps}), here);
  }
  // A body without columns beside it.
  const Floats other = fake("other", {5});
  negate(p, other);
  Table table;
  table.bind(make_plan(p, always), p, 1);
  const fuse::Launch launch = table.launch();
  REQUIRE(table.rows().size() == 7);
  CHECK(launch.column_count == 2);
  for (std::size_t r = 0; r < 6; ++r) {
    const Row& row = table.rows()[r];
    CHECK(row.body == 0);
    CHECK(row.instance == int(r / 2));
    const double* columns = launch.columns + row.instance * 2;
    CHECK(columns[0] == double(row.instance) + 0.5);
    CHECK(columns[1] == 10.0 * double(row.instance));
  }
  CHECK(table.rows()[6].body == 1);
}

TEST_CASE("a table is built again only when lists or threads change") {
  Floats one = fake("one", {100, 50000});
  Floats two = fake("two", {3});
  const auto program = [](const Floats& list, double scalar) {
    Program p;
    const auto slot = p.slot(list.view(), list.info());
    const ValueId value = p.argument(scalar, {});
    p.store(slot, apply(p, OpCode::mul, {p.load(slot, here), value}), here);
    return p;
  };
  const Program first = program(one, 1);
  const Plan plan = make_plan(first, always);
  Table table;
  CHECK(table.bind(plan, first, 2));
  CHECK_FALSE(table.bind(plan, first, 2));
  CHECK(table.launch().args[0] == 1);
  // Scalars are new at every launch.
  CHECK_FALSE(table.bind(plan, program(one, 2), 2));
  CHECK(table.launch().args[0] == 2);
  CHECK(table.parts().size() == 2);
  CHECK(table.bind(plan, program(one, 2), 1));
  CHECK(table.parts().size() == 1);
  CHECK(table.bind(plan, program(two, 3), 1));
  CHECK(table.rows().size() == 1);
  CHECK(table.rows()[0].numel == 3);
  CHECK(table.launch().args[0] == 3);
  CHECK_FALSE(table.bind(plan, program(two, 4), 1));
  // The one before is still there.
  CHECK_FALSE(table.bind(plan, program(one, 4), 1));
  CHECK(table.rows().size() == 2);
}

TEST_CASE("lists made anew over the same memory need no other table") {
  using Sizes = std::vector<std::int64_t>;
  const auto at = addresses_for({100, 50});
  const auto program = [](const Floats& list) {
    Program p;
    negate(p, list);
    return p;
  };
  const Floats first("first", at, Sizes{100, 50});
  const Plan plan = make_plan(program(first), always);
  Table table;
  const auto bind = [&](const Floats& list) {
    return table.bind(plan, program(list), 1);
  };
  CHECK(bind(first));
  const std::uint64_t version = table.version();
  for (int i = 0; i < 2; ++i) CHECK_FALSE(bind({"again", at, Sizes{100, 50}}));
  CHECK(table.version() == version);
  CHECK_FALSE(bind(first));
  CHECK(bind({"smaller", at, Sizes{100, 49}}));
  CHECK(table.rows()[1].numel == 49);
  CHECK(bind({"fewer", {at[0]}, Sizes{100}}));
  CHECK(bind({"elsewhere", {at[1]}, Sizes{100}}));
  CHECK(table.pointers()[0] == at[1]);
  CHECK(table.version() != version);
}

TEST_CASE("after an error the table is the one before") {
  Floats good = fake("good", {8});
  const auto twice = std::vector<void*>(2, addresses_for({8})[0]);
  const Floats bad("bad", twice, {8, 8});
  const auto program = [](const Floats& list) {
    Program p;
    negate(p, list);
    return p;
  };
  const Program p = program(good);
  const Plan plan = make_plan(p, always);
  Table table;
  CHECK(table.bind(plan, p, 1));
  CHECK_THROWS_AS(table.bind(plan, program(bad), 1), Error);
  CHECK_THROWS_AS(table.bind(plan, program(bad), 1), Error);
  CHECK_FALSE(table.bind(plan, p, 1));
  CHECK(table.rows().size() == 1);
}

TEST_CASE("lists of other sizes under one list of scalars are an error") {
  Program p;
  Floats a = Floats::zeros("a", {4, 6});
  Floats b = Floats::zeros("b", {4, 5});
  Doubles steps = Doubles::zeros("steps", {1, 1});
  const auto s = p.slot(steps.view(), steps.info(Rate::entry));
  for (const Floats* list : {&a, &b}) {
    const auto slot = p.slot(list->view(), list->info());
    p.store(slot, apply(p, OpCode::mul, {p.load(slot, here), p.load(s, here)}),
            here);
  }
  Table table;
  const Plan plan = make_plan(p, always);
  const std::string message =
      message_of<Error>([&] { table.bind(plan, p, 1); });
  CHECK(contains(message, "a[1] has 6 elements but b[1] has 5 elements"));
}
