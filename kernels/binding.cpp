#include "binding.h"

#include <algorithm>

#include "hazards.h"

namespace fuse {
namespace {

// A row costs about as much as this many elements, whatever its size.
constexpr i64 row_weight = 64;
// Less work than this is not worth waking another thread for.
constexpr i64 least_weight = 16384;
// Rows are cut at multiples of this, so that vectors stay whole.
constexpr i64 grain = 1024;

i64 weight_of(const Row& row) { return row.numel + row_weight; }

}  // namespace

bool Table::lists_changed(const Program& program, int threads) const {
  const auto lists = program.lists();
  if (threads != threads_ || lists.size() != list_ids_.size()) return true;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].id != list_ids_[i]) return true;
  }
  return false;
}

bool Table::bind(const Plan& plan, const Program& program, int threads) {
  const bool changed = lists_changed(program, threads);
  if (changed) {
    list_ids_.clear();  // a throw below must not leave half a table in use
    coincident_ = check_overlaps(plan, program);
    gather(plan, program);
    split(threads);
    threads_ = threads;
    for (const ListView& list : program.lists()) list_ids_.push_back(list.id);
  }
  gather_scalars(plan, program);
  return changed;
}

Launch Table::launch() const {
  return {rows_.data(), pointers_.data(), args_.data(), columns_.data(),
          column_count_};
}

void Table::gather(const Plan& plan, const Program& program) {
  rows_.clear();
  pointers_.clear();
  bytes_ = 0;
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    gather_instance(plan, program, i);
  }
}

void Table::gather_instance(const Plan& plan, const Program& program,
                            std::size_t instance) {
  const Instance& bound = plan.instances[instance];
  const Body& body = plan.bodies[std::size_t(bound.body)];
  const auto lists = program.lists();
  const std::size_t slots = bound.slots.size();
  // Per-tensor scalars have one element, so sizes come from another slot.
  std::size_t sized = 0;
  while (sized + 1 < slots && body.slots[sized].rate != Rate::element) ++sized;
  const bool scalars_only = body.slots[sized].rate != Rate::element;
  const ListView& sizes = lists[std::size_t(bound.slots[sized])];
  const i64 per_element = body.bytes_per_element();
  const i64 per_entry = body.bytes_per_entry();
  for (std::size_t e = 0; e < sizes.count; ++e) {
    const i64 numel = scalars_only ? 0 : sizes.numels[e];
    rows_.push_back(
        {numel, i64(pointers_.size()), bound.body, int(instance)});
    for (std::size_t s = 0; s < slots; ++s) {
      pointers_.push_back(lists[std::size_t(bound.slots[s])].addresses[e]);
    }
    bytes_ += numel * per_element + per_entry;
  }
}

void Table::gather_scalars(const Plan& plan, const Program& program) {
  const auto scalars = program.scalars();
  args_.resize(plan.args.size());
  for (std::size_t k = 0; k < args_.size(); ++k) {
    args_[k] = scalars[std::size_t(plan.args[k])].value;
  }
  column_count_ = plan.column_count;
  if (column_count_ == 0) return;
  columns_.resize(plan.instances.size() * std::size_t(column_count_));
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const auto& columns = plan.instances[i].columns;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      columns_[i * std::size_t(column_count_) + k] =
          scalars[std::size_t(columns[k])].value;
    }
  }
}

void Table::split(int threads) {
  parts_.clear();
  split_rows_.clear();
  i64 total = 0;
  for (const Row& row : rows_) total += weight_of(row);
  if (rows_.empty()) return;
  const i64 useful = std::max<i64>(1, total / least_weight);
  const i64 count = std::min<i64>(threads, useful);
  Part part = {0, 0, 0, 0};
  i64 before = 0;  // weight of the rows before r
  i64 next = 1;    // the part that ends at the next border
  for (i64 r = 0; r < i64(rows_.size()); ++r) {
    const Row& row = rows_[std::size_t(r)];
    const i64 after = before + weight_of(row);
    while (next < count && total * next / count < after) {
      const i64 inside = total * next / count - before;
      const i64 cut = std::min(row.numel, inside / grain * grain);
      ++next;
      if (r == part.row && cut <= part.begin) continue;
      if (cut == 0) {
        part.last_row = r - 1;
        part.end = rows_[std::size_t(r - 1)].numel;
      } else {
        part.last_row = r;
        part.end = cut;
      }
      parts_.push_back(part);
      if (cut == row.numel && cut != 0) {
        part = {r + 1, 0, 0, 0};
      } else {
        part = {r, cut, 0, 0};
        if (cut > 0 && (split_rows_.empty() || split_rows_.back() != r)) {
          split_rows_.push_back(r);
        }
      }
    }
    before = after;
  }
  if (part.row < i64(rows_.size())) {
    part.last_row = i64(rows_.size()) - 1;
    part.end = rows_.back().numel;
    parts_.push_back(part);
  }
}

}  // namespace fuse
