#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace fuse {

/// Sorts by merging the ascending runs that `values` consists of: n log r for r
/// runs, so a few lists that are each in order cost little more than one pass.
/// Equal values keep their order.
template <class Value, class Before>
void sort_runs(std::vector<Value>& values, const Before& before) {
  const auto begin = values.begin();
  auto at = std::is_sorted_until(begin, values.end(), before);
  if (at == values.end()) return;
  // of the runs, and the first begin
  std::vector<std::size_t> ends = {0, std::size_t(at - begin)};
  while (at != values.end()) {
    at = std::is_sorted_until(at, values.end(), before);
    ends.push_back(std::size_t(at - begin));
  }
  while (ends.size() > 2) {
    std::vector<std::size_t> merged = {0};
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      if (i + 2 < ends.size()) {
        std::inplace_merge(begin + std::ptrdiff_t(ends[i]),
                           begin + std::ptrdiff_t(ends[i + 1]),
                           begin + std::ptrdiff_t(ends[i + 2]), before);
      }
      merged.push_back(ends[std::min(i + 2, ends.size() - 1)]);
    }
    ends = std::move(merged);
  }
}

}  // namespace fuse
