#include "fusebook/ir/stored_memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "support/testing.h"

using fuse::StoredMemory;
using testing::Random;

namespace {

using Range = std::pair<std::uintptr_t, std::uintptr_t>;

StoredMemory memory_of(const std::vector<Range>& ranges) {
  StoredMemory memory;
  for (const auto& [begin, end] : ranges) memory.add(begin, end);
  memory.settle();
  return memory;
}

}  // namespace

TEST_CASE("what touches a range, byte by byte") {
  StoredMemory memory = memory_of({{100, 110}, {200, 201}});
  CHECK_FALSE(memory.touches(90, 100));
  CHECK(memory.touches(90, 101));
  CHECK(memory.touches(109, 110));
  CHECK(memory.touches(109, 300));
  CHECK_FALSE(memory.touches(110, 200));
  CHECK(memory.touches(110, 201));
  CHECK(memory.touches(200, 201));
  CHECK_FALSE(memory.touches(201, 1000));
  CHECK(memory.touches(0, 1000));
  CHECK_FALSE(memory.touches(105, 105));  // no bytes at all
}

TEST_CASE("nothing is touched where nothing is stored") {
  StoredMemory memory = memory_of({});
  CHECK_FALSE(memory.touches(0, 1000));
  memory = memory_of({{50, 50}});
  CHECK_FALSE(memory.touches(0, 1000));
}

TEST_CASE("cleared memory is forgotten") {
  StoredMemory memory = memory_of({{100, 110}});
  CHECK(memory.touches(100, 101));
  memory.clear();
  memory.add(300, 310);
  memory.settle();
  CHECK_FALSE(memory.touches(100, 101));
  CHECK(memory.touches(305, 306));
}

TEST_CASE(
    "the gap of the last question is no longer one when memory is added") {
  StoredMemory memory = memory_of({{100, 110}, {200, 201}});
  CHECK_FALSE(memory.touches(120, 130));
  CHECK_FALSE(memory.touches(150, 160));
  SUBCASE("after clear") {
    memory.clear();
    memory.add(150, 151);
  }
  SUBCASE("to what is there") { memory.add(201, 202); }
  memory.settle();
  CHECK(memory.touches(149, 202));
  CHECK_FALSE(memory.touches(152, 160));
}

TEST_CASE("random ranges, which may overlap, in any order of questions") {
  Random random(1);
  int touched = 0;
  for (int round = 0; round < 2000; ++round) {
    const int space = 40 + random.below(400);
    std::vector<Range> ranges(std::size_t(random.below(20)));
    std::vector<bool> stored(std::size_t(space) + 50, false);
    for (auto& [begin, end] : ranges) {
      begin = std::uintptr_t(random.below(space));
      end = begin + std::uintptr_t(random.below(12));
      for (std::uintptr_t b = begin; b < end; ++b) stored[b] = true;
    }
    StoredMemory memory = memory_of(ranges);
    const bool in_order = random.chance(0.5);
    for (int q = 0; q < 50; ++q) {
      const auto begin =
          std::uintptr_t(in_order ? q * space / 50 : random.below(space));
      const std::uintptr_t end = begin + std::uintptr_t(random.below(30));
      bool expected = false;
      for (std::uintptr_t b = begin; b < end; ++b) {
        expected = expected || stored[b];
      }
      REQUIRE(memory.touches(begin, end) == expected);
      touched += int(expected);
    }
  }
  CHECK(touched > 10000);
  CHECK(touched < 90000);
}
