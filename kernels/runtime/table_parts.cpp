#include "fusebook/runtime/table_parts.h"

#include <algorithm>

#include "fusebook/ops/dtype.h"

namespace fuse {
namespace {

// The cost of a row, whatever its size, in elements.
constexpr i64 row_weight = 64;
// Less work than this is not worth waking another thread.
constexpr i64 least_weight = 16384;
// Shares of this size are so large that having several per thread costs
// nothing.
constexpr i64 fine_weight = 262144;
constexpr i64 most_shares = 8;
// Rows are cut at multiples of this, so that vectors stay whole, and blocks.
constexpr i64 grain = largest_block;

// A position between two elements: before `element` of row `row`.
struct Cut {
  i64 row = 0;
  i64 element = 0;
};

i64 weight_of(const Row& row) { return row.numel + row_weight; }

// The position in a row with about this much of its weight before it.
Cut cut_row(const Row& row, i64 number, i64 weight) {
  const i64 element = weight / grain * grain;
  if (element < row.numel) return {number, element};
  return row.numel == 0 ? Cut{number, 0} : Cut{number + 1, 0};
}

// The boundaries between shares of equal weight, up to one grain.
std::vector<Cut> find_cuts(std::span<const Row> rows, int threads) {
  i64 total = 0;
  for (const Row& row : rows) total += weight_of(row);
  const i64 shares = count_shares(total, threads);
  std::vector<Cut> cuts;
  i64 before = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const i64 after = before + weight_of(rows[r]);
    for (i64 k = i64(cuts.size()) + 1; k < shares; ++k) {
      const i64 border = total * k / shares;
      if (border >= after) break;
      cuts.push_back(cut_row(rows[r], i64(r), border - before));
    }
    before = after;
  }
  return cuts;
}

// Whole rows from `begin` on, and a share of the row containing `end`.
void add_part(std::span<const Row> rows, const Cut& begin, const Cut& end,
              TableParts& to) {
  if (begin.row == end.row && begin.element == end.element) return;
  if (end.element > 0) {
    to.parts.push_back({begin.row, begin.element, end.row, end.element});
    const bool known =
        !to.split_rows.empty() && to.split_rows.back() == end.row;
    if (!known) to.split_rows.push_back(end.row);
  } else {
    const i64 last = end.row - 1;
    to.parts.push_back({begin.row, begin.element, last, rows[last].numel});
  }
}

}  // namespace

i64 weight_of(i64 elements) { return elements + row_weight; }

// For no more threads than are worth waking. Large shares are split into several
// per thread: a thread with a CPU to itself then takes over work from threads
// that share theirs with another program, or with another thread pool of this
// one.
i64 count_shares(i64 weight, int threads) {
  const i64 used = std::clamp<i64>(weight / least_weight, 1, threads);
  if (used == 1) return 1;
  return used * std::clamp<i64>(weight / used / fine_weight, 1, most_shares);
}

void share_out(std::span<const Row> rows, int threads, TableParts& to) {
  to.parts.clear();
  to.split_rows.clear();
  if (rows.empty()) return;
  Cut begin;
  for (const Cut& cut : find_cuts(rows, threads)) {
    add_part(rows, begin, cut, to);
    begin = cut;
  }
  add_part(rows, begin, {i64(rows.size()), 0}, to);
}

}  // namespace fuse
