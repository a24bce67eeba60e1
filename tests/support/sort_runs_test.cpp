#include "fusebook/support/sort_runs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "support/testing.h"

namespace fuse {
namespace {

// A key, and where the value stood.
using Value = std::pair<int, int>;

bool by_key(const Value& a, const Value& b) { return a.first < b.first; }

std::vector<Value> numbered(const std::vector<int>& keys) {
  std::vector<Value> values;
  for (const int key : keys) values.emplace_back(key, int(values.size()));
  return values;
}

void check_sorts(const std::vector<int>& keys) {
  std::vector<Value> values = numbered(keys);
  std::vector<Value> expected = values;
  std::stable_sort(expected.begin(), expected.end(), by_key);
  sort_runs(values, by_key);
  CHECK(values == expected);
}

TEST_CASE("runs are merged, and equal values keep their order") {
  check_sorts({});
  check_sorts({1});
  check_sorts({1, 2, 3});
  check_sorts({3, 2, 1});
  check_sorts({1, 3, 5, 2, 4, 6});
  check_sorts({1, 3, 5, 2, 4, 6, 0, 7});
  check_sorts({2, 2, 1, 1, 2, 1});
  testing::Random random(7);
  for (int length = 0; length < 200; ++length) {
    std::vector<int> keys;
    for (int i = 0; i < length; ++i) keys.push_back(random.below(50));
    check_sorts(keys);
    // Runs of any length, and any number of them.
    for (int from = 0; from < length;) {
      const int to = std::min(length, from + 1 + random.below(40));
      std::sort(keys.begin() + from, keys.begin() + to);
      from = to;
    }
    check_sorts(keys);
  }
}

TEST_CASE("lists in order are merged in few comparisons") {
  // Four lists whose elements alternate in memory.
  constexpr int lists = 4;
  constexpr int length = 1000;
  std::vector<int> keys;
  for (int list = 0; list < lists; ++list) {
    for (int i = 0; i < length; ++i) keys.push_back(i * lists + list);
  }
  int comparisons = 0;
  sort_runs(keys, [&](int a, int b) {
    ++comparisons;
    return a < b;
  });
  CHECK(std::is_sorted(keys.begin(), keys.end()));
  CHECK(comparisons <= 3 * lists * length);  // to find them, and two merges
}

}  // namespace
}  // namespace fuse
