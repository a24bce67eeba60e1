#include "fusebook/layout/collapse_dims.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "fusebook/prelude/cpu_loops.h"
#include "fusebook/runtime/launch_table.h"
#include "support/testing.h"

using fuse::i64;
using fuse::Layout;
using fuse::LineCutter;
using testing::Random;

namespace {

using Numbers = std::vector<std::int64_t>;
using Place = std::vector<i64>;  // of one element in every tensor

std::int64_t product(const Numbers& sizes) {
  std::int64_t all = 1;
  for (const std::int64_t size : sizes) all *= size;
  return all;
}

Numbers row_major(const Numbers& sizes) {
  Numbers strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * sizes[d];
  }
  return strides;
}

struct Cut {
  i64 count = 0;
  i64 length = 0;
  Place strides;
  std::vector<Place> places;  // of all elements
  std::vector<Place> firsts;  // of the lines
};

Cut cut(const Numbers& sizes, const std::vector<Numbers>& strides,
        std::size_t ordered = 0) {
  std::vector<Layout> layouts;
  for (const Numbers& each : strides) {
    layouts.push_back(each.empty()
                          ? Layout{}
                          : Layout{sizes.data(), each.data(), sizes.size()});
  }
  LineCutter cutter;
  cutter.cut(layouts, ordered, product(sizes));
  Cut result = {cutter.count(), cutter.length(), {}, {}, {}};
  result.strides.assign(cutter.strides().begin(), cutter.strides().end());
  cutter.for_each([&](std::span<const i64> offsets) {
    result.firsts.emplace_back(offsets.begin(), offsets.end());
    for (i64 i = 0; i < cutter.length(); ++i) {
      Place place(offsets.begin(), offsets.end());
      for (std::size_t t = 0; t < place.size(); ++t) {
        place[t] += i * result.strides[t];
      }
      result.places.push_back(std::move(place));
    }
  });
  REQUIRE(i64(result.firsts.size()) == result.count);
  std::sort(result.places.begin(), result.places.end());
  return result;
}

// The same by nested loops: count up the index, and add up.
std::vector<Place> all_places(const Numbers& sizes,
                              const std::vector<Numbers>& strides) {
  std::vector<Place> places;
  Numbers index(sizes.size(), 0);
  for (std::int64_t n = 0; n < product(sizes); ++n) {
    Place place;
    for (const Numbers& each : strides) {
      const Numbers& used = each.empty() ? row_major(sizes) : each;
      i64 offset = 0;
      for (std::size_t d = 0; d < sizes.size(); ++d) {
        offset += index[d] * used[d];
      }
      place.push_back(offset);
    }
    places.push_back(std::move(place));
    for (std::size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

// Dense in some order of the dimensions, or with room between elements.
Numbers any_strides(const Numbers& sizes, Random& random) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t d = order.size(); d-- > 1;) {
    std::swap(order[d], order[std::size_t(random.below(int(d) + 1))]);
  }
  Numbers strides(sizes.size());
  std::int64_t stride = 1;
  for (const std::size_t d : order) {
    if (random.chance(0.3)) stride *= 1 + random.below(3);
    strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
  return strides;
}

}  // namespace

TEST_CASE("every element of every tensor is on one line, all in step") {
  Random random(1);
  int one_line = 0;
  int many_lines = 0;
  for (int round = 0; round < 3000; ++round) {
    Numbers sizes(std::size_t(random.below(6)));
    for (std::int64_t& size : sizes) {
      size = random.chance(0.03)  ? 0
             : random.chance(0.1) ? 20
                                  : 1 + random.below(4);
    }
    std::vector<Numbers> strides(1 + std::size_t(random.below(4)));
    for (Numbers& each : strides) {
      if (random.chance(0.7)) each = any_strides(sizes, random);
    }
    if (random.chance(0.3)) strides.assign(strides.size(), strides[0]);
    const auto ordered = std::size_t(random.below(int(strides.size())));
    const Cut got = cut(sizes, strides, ordered);
    REQUIRE(got.count * got.length == product(sizes));
    REQUIRE(got.places == all_places(sizes, strides));
    (got.count == 1 ? one_line : many_lines)++;
  }
  CHECK(one_line > 500);
  CHECK(many_lines > 500);
}

TEST_CASE("dimensions merge where all tensors let them") {
  SUBCASE("row-major order everywhere is one line") {
    const Cut got = cut({3, 4, 5}, {{20, 5, 1}, {}});
    CHECK(got.count == 1);
    CHECK(got.length == 60);
    CHECK(got.strides == Place{1, 1});
  }
  SUBCASE("so are tensors that are dense in one other order, of 5 dimensions") {
    // Made by permuting {2, 3, 4, 5, 6}: strides 360, 120, 30, 6, 1.
    const Numbers sizes = {4, 6, 2, 5, 3};
    const Numbers strides = {30, 1, 360, 6, 120};
    const Cut got = cut(sizes, {strides, strides, strides});
    CHECK(got.count == 1);
    CHECK(got.length == 720);
    CHECK(got.strides == Place{1, 1, 1});
  }
  SUBCASE("columns left out leave a line a row") {
    const Cut got = cut({7, 40}, {{80, 1}, {}});
    CHECK(got.count == 7);
    CHECK(got.length == 40);
    CHECK(got.strides == Place{1, 1});
    CHECK(got.firsts[2] == Place{160, 80});
  }
  SUBCASE("every second column of all is still one line") {
    const Cut got = cut({7, 40}, {{80, 2}});
    CHECK(got.count == 1);
    CHECK(got.length == 280);
    CHECK(got.strides == Place{2});
  }
  SUBCASE("one tensor that does not is enough to keep them apart") {
    const Cut got = cut({7, 40}, {{80, 2}, {40, 1}, {1, 7}});
    CHECK(got.count == 7);
    CHECK(got.strides == Place{2, 1, 7});
  }
  SUBCASE("the outer two of three merge") {
    const Cut got = cut({3, 4, 20}, {{160, 40, 1}, {}});
    CHECK(got.count == 12);
    CHECK(got.length == 20);
  }
}

TEST_CASE("dimensions of size 1 do not matter, whatever their stride") {
  const Cut got = cut({1, 4, 1, 5}, {{77, 5, 13, 1}});
  CHECK(got.count == 1);
  CHECK(got.length == 20);
  CHECK(got.strides == Place{1});
}

TEST_CASE("a transposed tensor beside a contiguous one: who decides") {
  const std::vector<Numbers> strides = {{1, 30}, {20, 1}};
  const Cut first = cut({30, 20}, strides, 0);
  CHECK(first.count == 20);
  CHECK(first.strides == Place{1, 20});
  const Cut second = cut({30, 20}, strides, 1);
  CHECK(second.count == 30);
  CHECK(second.strides == Place{30, 1});
}

TEST_CASE("where the innermost dimension is tiny, the longest is the line") {
  const Cut tall = cut({1000, 3}, {{8, 1}});
  CHECK(tall.count == 3);
  CHECK(tall.length == 1000);
  CHECK(tall.strides == Place{8});
  const Cut usual = cut({1000, 16}, {{24, 1}});
  CHECK(usual.count == 1000);
  CHECK(usual.strides == Place{1});
  const Cut tiny = cut({3, 3}, {{8, 1}});  // no other is longer
  CHECK(tiny.count == 3);
  CHECK(tiny.strides == Place{1});
}

TEST_CASE("nothing, one number, and repeated elements") {
  const Cut nothing = cut({4, 0, 3}, {{0, 3, 1}, {1, 4, 9}});
  CHECK(nothing.count == 1);
  CHECK(nothing.length == 0);
  const Cut number = cut({}, {{}, {}});
  CHECK(number.count == 1);
  CHECK(number.length == 1);
  CHECK(number.firsts == std::vector<Place>{{0, 0}});
  const Cut repeated = cut({30, 20}, {{20, 1}, {0, 1}});
  CHECK(repeated.count == 30);
  CHECK(repeated.strides == Place{1, 1});
  CHECK(repeated.firsts[29] == Place{580, 0});
}

// ---- the table --------------------------------------------------------------

namespace {

const auto here = std::source_location::current();

// A program that negates a list and counts its steps.
struct Counted {
  Counted(const std::vector<Numbers>& sizes_of,
          const std::vector<Numbers>& strides_of)
      : sizes(sizes_of), strides(strides_of) {
    for (std::size_t e = 0; e < sizes.size(); ++e) {
      numels.push_back(product(sizes[e]));
      addresses.push_back(reinterpret_cast<void*>(4096 + (e << 32U)));
      steps.push_back(reinterpret_cast<void*>(64 + 8 * e));
      layouts.push_back({sizes[e].data(), strides[e].data(), sizes[e].size()});
    }
    const fuse::ListView list = {testing::next_list_id(),
                                 addresses.data(),
                                 numels.data(),
                                 sizes.size(),
                                 "list",
                                 layouts.data()};
    const fuse::ListView counts = {testing::next_list_id(), steps.data(),
                                   ones.data(), sizes.size(), "steps"};
    const auto slot =
        program.slot(list, {fuse::DType::float32, fuse::Rate::element});
    const auto step =
        program.slot(counts, {fuse::DType::float64, fuse::Rate::entry});
    const std::vector<fuse::ValueId> in = {program.load(slot, here),
                                           program.load(step, here)};
    program.store(slot, program.apply(fuse::OpCode::mul, in, here), here);
    const std::vector<fuse::ValueId> next = {in[1], program.constant(1, {})};
    program.store(step, program.apply(fuse::OpCode::add, next, here), here);
  }

  fuse::Table bind(int threads) {
    fuse::Table table;
    const auto always = [](const fuse::Origin&) { return true; };
    table.bind(make_plan(program, always), program, threads);
    return table;
  }

  std::vector<Numbers> sizes;
  std::vector<Numbers> strides;
  std::vector<void*> addresses;
  std::vector<void*> steps;
  std::vector<std::int64_t> numels;
  std::vector<std::int64_t> ones = std::vector<std::int64_t>(100, 1);
  std::vector<Layout> layouts;
  fuse::Program program;
};

}  // namespace

TEST_CASE("the rows of a table: one a line, with the number of their tensor") {
  Counted counted({{50, 30}, {0, 3}, {40, 20}, {300}, {20, 20}},
                  {{1, 50}, {3, 1}, {100, 1}, {3}, {21, 1}});
  const fuse::Table table = counted.bind(1);
  REQUIRE(table.tensors() == 5);
  std::vector<i64> rows_of(5);
  std::vector<i64> elements_of(5);
  const fuse::Launch launch = table.launch();
  REQUIRE(launch.strides != nullptr);
  REQUIRE(launch.row_count == i64(table.rows().size()));
  i64 last = 0;
  for (const fuse::Row& row : table.rows()) {
    REQUIRE(row.entry >= last);
    last = row.entry;
    const auto e = std::size_t(row.entry);
    const auto at =
        reinterpret_cast<std::uintptr_t>(launch.pointers[row.pointers]);
    const auto base = reinterpret_cast<std::uintptr_t>(counted.addresses[e]);
    const i64 wide = counted.strides[e][0];
    CHECK(at == base + std::uintptr_t(rows_of[e] * wide * 4) * (e != 0));
    CHECK(launch.strides[row.pointers] == (e == 3 ? 3 : 1));
    CHECK(launch.pointers[row.pointers + 1] == counted.steps[e]);
    rows_of[e]++;
    elements_of[e] += row.numel;
  }
  CHECK(rows_of == std::vector<i64>{1, 1, 40, 1, 20});
  CHECK(elements_of == std::vector<i64>{1500, 0, 800, 300, 400});
  // Each tensor's step counts once: 8 bytes there and back.
  CHECK(table.bytes() == (1500 + 800 + 300 + 400) * 8 + 5 * 16);
  // The first lines of the third and of the last tensor.
  CHECK(std::vector<i64>(table.split_rows().begin(),
                         table.split_rows().end()) == std::vector<i64>{2, 43});
}

TEST_CASE("each tensor is finished once, however it is split") {
  Counted counted({{3000, 40}, {100, 1000}, {90000}, {4, 50000}},
                  {{80, 1}, {2000, 2}, {1}, {100000, 1}});
  for (const int threads : {1, 2, 3, 8, 64}) {
    const fuse::Table table = counted.bind(threads);
    const fuse::Launch launch = table.launch();
    std::vector<int> finished(4);
    std::vector<i64> seen(table.rows().size());
    for (const fuse::Part& part : table.parts()) {
      fuse::device::for_each_row(
          launch, part,
          [&](const fuse::Row& row, i64 begin, i64 end, bool whole) {
            const auto r = std::size_t(&row - launch.rows);
            REQUIRE(begin == seen[r]);
            seen[r] = end;
            if (whole) finished[std::size_t(row.entry)]++;
          });
    }
    for (std::size_t r = 0; r < seen.size(); ++r) {
      REQUIRE(seen[r] == table.rows()[r].numel);
    }
    for (const i64 r : table.split_rows()) {
      finished[std::size_t(table.rows()[std::size_t(r)].entry)]++;
    }
    INFO(threads);
    CHECK(finished == std::vector<int>{1, 1, 1, 1});
    if (threads > 1) CHECK(table.parts().size() > 1);
  }
}
