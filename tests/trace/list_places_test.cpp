#include "fusebook/trace/list_places.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "support/testing.h"

using fuse::ListPlaces;
using testing::Random;

namespace {

std::vector<std::size_t> near(const ListPlaces& places, std::uintptr_t begin,
                              std::uintptr_t end) {
  std::vector<std::size_t> found;
  places.any_of(begin, end, [&](std::size_t list) {
    found.push_back(list);
    return false;
  });
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

TEST_CASE("random lists: those that reach into the bytes, each once") {
  Random random(1);
  ListPlaces places;
  std::size_t hits = 0;
  for (int round = 0; round < 200; ++round) {
    places.clear();
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> lists;
    const int space = 50 + random.below(2000);
    for (int n = random.below(100); n > 0; --n) {
      const auto begin = std::uintptr_t(random.below(space));
      const auto size =
          random.chance(0.1) ? random.below(space) : random.below(20);
      lists.emplace_back(begin, begin + std::uintptr_t(size));
      places.add(lists.back().first, lists.back().second);
      const auto from = std::uintptr_t(random.below(space));
      const auto to = from + std::uintptr_t(1 + random.below(8));
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (lists[i].first < to && from < lists[i].second)
          expected.push_back(i);
      }
      REQUIRE(near(places, from, to) == expected);
      hits += expected.size();
    }
    REQUIRE(places.size() == lists.size());
  }
  CHECK(hits > 5000);
}

TEST_CASE("the search ends where the visitor says so") {
  ListPlaces places;
  for (int i = 0; i < 10; ++i) places.add(0, 100);
  int visits = 0;
  CHECK(places.any_of(5, 6, [&](std::size_t) { return ++visits == 3; }));
  CHECK(visits == 3);
  CHECK_FALSE(places.any_of(100, 110, [](std::size_t) { return true; }));
}
