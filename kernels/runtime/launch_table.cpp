#include "fusebook/runtime/launch_table.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

// The source of one column's values.
struct ColumnSource {
  double single = 0;
  const double* values = nullptr;  // one per group, if they differ
  const std::int32_t* groups = nullptr;

  double value(i64 tensor) const {
    return values == nullptr ? single : values[groups[tensor]];
  }
};

ColumnSource source_of(const Number& number) {
  if (number.is_single()) return {number.value, nullptr, nullptr};
  return {0, number.column->values.data(),
          number.column->groups->of_tensor.data()};
}

// The least recently used table, moved to the front.
template <class Kept>
Kept& oldest(std::vector<Kept>& kept) {
  if (kept.size() + 1 < Table::most_kept) kept.emplace_back();
  std::rotate(kept.begin(), kept.end() - 1, kept.end());
  return kept.front();
}

}  // namespace

bool Table::lists_changed(const Program& program, int threads) const {
  if (now_.compare(program, threads) == Change::none) return false;
  return std::none_of(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.table.compare(program, threads) == Change::none;
  });
}

bool Table::bind(const Plan& plan, const Program& program, int threads) {
  return bind(plan, program, threads, [](std::size_t) -> double* {
    throw Error(
        "this table was bound without memory for the results of reductions; "
        "bind it with that of its kernel");
  });
}

bool Table::bind(const Plan& plan, const Program& program, int threads,
                 NumberMemory memory) {
  bool changed = false;
  if (now_.compare(program, threads) != Change::none) {
    const std::uint64_t content = content_of(program.lists());
    changed = !find_kept(program, threads, content);
    if (changed) replace(plan, program, threads, content, memory);
  }
  now_.rename(program);
  gather_scalars(plan, program);
  return changed;
}

// Finds the kept table that fits the program and makes it the current one.
bool Table::find_kept(const Program& program, int threads,
                      std::uint64_t content) {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    Kept& kept = kept_[i];
    if (kept.content != content) continue;
    if (kept.table.compare(program, threads) != Change::none) continue;
    std::swap(kept.table, now_);
    std::swap(kept.content, content_);
    std::rotate(kept_.begin(), kept_.begin() + std::ptrdiff_t(i),
                kept_.begin() + std::ptrdiff_t(i) + 1);
    return true;
  }
  return false;
}

void Table::replace(const Plan& plan, const Program& program, int threads,
                    std::uint64_t content, NumberMemory memory) {
  if (now_.compare(program, threads) == Change::moved) {
    move(plan, program, content);
  } else {
    exchange(plan, program, threads, memory);
  }
  content_ = content;
  seen_[next_seen_++ % seen_.size()] = content;
}

// New gradients at each step never come back: a single table, which stays in
// the cache, is updated for them again and again. Lists seen before may return
// once more, and then there will be a table for them.
void Table::move(const Plan& plan, const Program& program,
                 std::uint64_t content) {
  const bool keeps = came_back(content);
  if (keeps) keep_current();
  now_.move(plan, program);
  if (keeps) now_.forget_moves();  // the old table still exists
}

// Other lists, such as those of parameters that do not take part in every step:
// perhaps they have only moved since they were last used.
void Table::exchange(const Plan& plan, const Program& program, int threads,
                     NumberMemory memory) {
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
        return kept.table.compare(program, threads) == Change::moved;
      });
  if (known != kept_.end()) {
    std::swap(known->table, now_);
    std::swap(known->content, content_);
    std::rotate(kept_.begin(), known, known + 1);
    now_.move(plan, program);
    return;
  }
  if (!now_.empty()) {
    Kept& place = oldest(kept_);
    std::swap(place.table, now_);
    place.content = content_;
  }
  now_.build(plan, program, threads, memory);
}

bool Table::came_back(std::uint64_t content) const {
  return std::find(seen_.begin(), seen_.end(), content) != seen_.end();
}

void Table::keep_current() {
  if (now_.empty()) return;
  Kept& place = oldest(kept_);
  place.table = now_;
  place.content = content_;
}

i64 Table::tensors() const {
  const auto all = rows();
  const std::size_t first = first_row();
  return first < all.size() ? all.back().entry + 1 - all[first].entry : 0;
}

std::int64_t Table::bytes() const {
  const auto all = phase_bytes();
  return std::accumulate(all.begin(), all.end(), std::int64_t(0));
}

Reducing Table::reducing() const {
  return {launch(), reductions().tensors().data(), reductions().chunks().data(),
          now_.numbers()};
}

Launch Table::launch() const {
  return {rows().data(),     pointers().data(),
          args_.data(),      columns_.data(),
          column_count_,     strides().empty() ? nullptr : strides().data(),
          i64(rows().size())};
}

void Table::gather_scalars(const Plan& plan, const Program& program) {
  const auto scalars = program.scalars();
  args_.resize(plan.args.size());
  for (std::size_t k = 0; k < args_.size(); ++k) {
    const std::int32_t scalar = plan.args[k];
    args_[k] = scalar < 0 ? 0 : scalars[scalar].value;
  }
  column_count_ = plan.column_count;
  if (column_count_ == 0) {
    columns_.clear();
    return;
  }
  const auto rows = now_.column_rows();
  columns_.resize(std::size_t(rows.back() * column_count_));
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    gather_columns(scalars, plan.instances[i].columns, rows[i], rows[i + 1]);
  }
}

// Rows of columns from `begin` on: one per tensor, or one for all. Row by row,
// for a single pass through memory.
void Table::gather_columns(std::span<const ScalarLeaf> scalars,
                           std::span<const std::int32_t> columns, i64 begin,
                           i64 end) {
  constexpr std::size_t at_once = 16;
  std::array<ColumnSource, at_once> sources;
  for (std::size_t first = 0; first < columns.size(); first += at_once) {
    const std::size_t count = std::min(at_once, columns.size() - first);
    for (std::size_t k = 0; k < count; ++k) {
      sources[k] = source_of(scalars[columns[first + k]]);
    }
    double* row = columns_.data() + std::size_t(begin * column_count_) + first;
    for (i64 e = 0; e < end - begin; ++e, row += column_count_) {
      for (std::size_t k = 0; k < count; ++k) row[k] = sources[k].value(e);
    }
  }
}

}  // namespace fuse
