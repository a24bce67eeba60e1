#include "binding.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "error.h"
#include "hazards.h"

namespace fuse {
namespace {

// A row costs about as much as this many elements, whatever its size.
constexpr i64 row_weight = 64;
// Less work than this is not worth waking another thread for.
constexpr i64 least_weight = 16384;
// Shares of this much cost nothing by their number; so many a thread do.
constexpr i64 fine_weight = 262144;
constexpr i64 most_shares = 8;
// Rows are cut at multiples of this, so that vectors stay whole.
constexpr i64 grain = 1024;

std::string name(const ListView& list, std::size_t entry) {
  return (list.label != nullptr ? list.label : "list") + std::string("[") +
         std::to_string(entry) + "]";
}

std::string describe(const ListView& list, std::size_t entry) {
  return name(list, entry) + " has " + std::to_string(list.numels[entry]) +
         " elements";
}

// Lists of other shapes come together when both use the same per-tensor list.
void check_sizes(const ListView& a, const ListView& b) {
  const auto [at_a, at_b] =
      std::mismatch(a.numels, a.numels + a.count, b.numels);
  if (at_a == a.numels + a.count) return;
  const auto entry = std::size_t(at_a - a.numels);
  throw Error(describe(a, entry) + " but " + describe(b, entry) +
              ", and both are updated with the same list of per-tensor "
              "scalars; compile them as two functions");
}

// In lists that are cut into lines the shapes must be equal, too.
void check_shapes(const ListView& a, const ListView& b) {
  if (a.layouts == nullptr || b.layouts == nullptr) return;
  for (std::size_t e = 0; e < a.count; ++e) {
    const Layout& x = a.layouts[e];
    const Layout& y = b.layouts[e];
    if (std::equal(x.sizes, x.sizes + x.rank, y.sizes, y.sizes + y.rank)) {
      continue;
    }
    throw Error(name(a, e) + " and " + name(b, e) +
                " have as many elements but other shapes, and strides, and "
                "both are updated with the same list: of per-tensor scalars, "
                "or of memory that is used in two shapes; compile them as two "
                "functions");
  }
}

// The slot that says how many tensors there are and how large: per-tensor
// scalars have one element, so it is another one if there is any.
std::size_t sized_slot(const Body& body) {
  std::size_t best = 0;
  for (std::size_t s = 1; s < body.slots.size(); ++s) {
    if (body.slots[s].rate > body.slots[best].rate) best = s;
  }
  return best;
}

i64 weight_of(const Row& row) { return row.numel + row_weight; }

// The place in a row that has about this much weight of it before it.
Cut cut_row(const Row& row, i64 number, i64 weight) {
  const i64 element = weight / grain * grain;
  if (element < row.numel) return {number, element};
  return row.numel == 0 ? Cut{number, 0} : Cut{number + 1, 0};
}

// One share a thread, and no more threads than are worth waking. Where shares
// are large, several a thread: who has a CPU to itself then takes over from
// those that must share theirs with another program, or with another thread
// pool of this one.
i64 count_shares(i64 total, int threads) {
  const i64 used = std::clamp<i64>(total / least_weight, 1, threads);
  if (used == 1) return 1;
  return used * std::clamp<i64>(total / used / fine_weight, 1, most_shares);
}

// Where one share ends and the next one begins: shares of equal weight, but for
// up to one grain.
std::vector<Cut> find_cuts(const std::vector<Row>& rows, int threads) {
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

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

bool Table::lists_changed(const Program& program, int threads) const {
  return threads != threads_ || !bound_.match(program.lists());
}

bool Table::bind(const Plan& plan, const Program& program, int threads) {
  const bool changed = lists_changed(program, threads);
  if (changed) {
    bound_.clear();  // a throw below must not leave half a table in use
    version_ = next_version();
    coincident_ = check_overlaps(plan, program);
    gather(plan, program);
    split(threads);
    threads_ = threads;
    bound_.assign(program.lists());
  } else {
    bound_.rename(program.lists());
  }
  gather_scalars(plan, program);
  return changed;
}

Launch Table::launch() const {
  return {rows_.data(),     pointers_.data(),
          args_.data(),     columns_.data(),
          column_count_,    strided_ ? strides_.data() : nullptr,
          i64(rows_.size())};
}

void Table::gather(const Plan& plan, const Program& program) {
  rows_.clear();
  pointers_.clear();
  strides_.clear();
  strided_ = std::any_of(plan.bodies.begin(), plan.bodies.end(),
                         [](const Body& body) { return body.strided(); });
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
  const std::size_t sized = sized_slot(body);
  const bool scalars_only = body.slots[sized].rate != Rate::element;
  const ListView& sizes = lists[std::size_t(bound.slots[sized])];
  const ListView* shapes = &sizes;
  for (std::size_t s = sized + 1; s < slots; ++s) {
    if (body.slots[s].rate != Rate::element) continue;
    const ListView& list = lists[std::size_t(bound.slots[s])];
    check_sizes(sizes, list);
    check_shapes(*shapes, list);
    if (list.layouts != nullptr) shapes = &list;
  }
  const i64 per_element = body.bytes_per_element();
  const i64 per_entry = body.bytes_per_entry();
  for (std::size_t e = 0; e < sizes.count; ++e) {
    const i64 numel = scalars_only ? 0 : sizes.numels[e];
    const Row row = {numel, 0, tensors(), bound.body, int(instance)};
    if (body.strided()) {
      add_lines(row, bound, body, program, e);
    } else {
      add_tensor(row, bound, program, e);
    }
    bytes_ += numel * per_element + per_entry;
  }
}

void Table::add_tensor(const Row& row, const Instance& bound,
                       const Program& program, std::size_t e) {
  rows_.push_back(row);
  rows_.back().pointers = i64(pointers_.size());
  for (const std::int32_t slot : bound.slots) {
    const ListView& list = program.lists()[std::size_t(slot)];
    const Rate rate = program.slots()[std::size_t(slot)].rate;
    pointers_.push_back(list.addresses[rate == Rate::uniform ? 0 : e]);
  }
  if (strided_) strides_.resize(pointers_.size(), 1);
}

// Every line of a tensor becomes a row; per-tensor scalars stay where they are.
void Table::add_lines(const Row& row, const Instance& bound, const Body& body,
                      const Program& program, std::size_t e) {
  std::size_t ordered = body.slots.size();
  layouts_.clear();
  for (std::size_t s = 0; s < body.slots.size(); ++s) {
    const BodySlot& slot = body.slots[s];
    if (slot.rate != Rate::element) continue;
    const ListView& list = program.lists()[std::size_t(bound.slots[s])];
    if (slot.stored) ordered = std::min(ordered, layouts_.size());
    layouts_.push_back(list.layouts != nullptr ? list.layouts[e] : Layout{});
  }
  cutter_.cut(layouts_, ordered < layouts_.size() ? ordered : 0, row.numel);
  cutter_.for_each([&](std::span<const i64> offsets) {
    add_tensor(row, bound, program, e);
    rows_.back().numel = cutter_.length();
    const auto first = std::size_t(rows_.back().pointers);
    std::size_t k = 0;  // of the slots with elements
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      if (body.slots[s].rate != Rate::element) continue;
      pointers_[first + s] = static_cast<char*>(pointers_[first + s]) +
                             offsets[k] * i64(size_of(body.slots[s].dtype));
      strides_[first + s] = cutter_.strides()[k++];
    }
  });
}

void Table::gather_scalars(const Plan& plan, const Program& program) {
  const auto scalars = program.scalars();
  args_.resize(plan.args.size());
  for (std::size_t k = 0; k < args_.size(); ++k) {
    args_[k] = scalars[std::size_t(plan.args[k])].value;
  }
  column_count_ = plan.column_count;
  if (column_count_ == 0) {
    columns_.clear();
    return;
  }
  columns_.resize(plan.instances.size() * std::size_t(column_count_));
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const auto& columns = plan.instances[i].columns;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      columns_[i * std::size_t(column_count_) + k] =
          scalars[std::size_t(columns[k])].value;
    }
  }
}

// Whole rows from `begin` on, and a share of the row that `end` lies in.
void Table::add_part(const Cut& begin, const Cut& end) {
  if (begin.row == end.row && begin.element == end.element) return;
  if (end.element > 0) {
    parts_.push_back({begin.row, begin.element, end.row, end.element});
    const bool known = !split_rows_.empty() && split_rows_.back() == end.row;
    if (!known && !is_line(std::size_t(end.row))) {
      split_rows_.push_back(end.row);
    }
  } else {
    const i64 last = end.row - 1;
    parts_.push_back(
        {begin.row, begin.element, last, rows_[std::size_t(last)].numel});
  }
}

void Table::split(int threads) {
  parts_.clear();
  split_rows_.clear();
  if (rows_.empty()) return;
  Cut begin;
  for (const Cut& cut : find_cuts(rows_, threads)) {
    add_part(begin, cut);
    begin = cut;
  }
  add_part(begin, {i64(rows_.size()), 0});
  if (strided_) finish_lines();
}

bool Table::is_line(std::size_t row) const {
  return strided_ && device::shares_tensor(launch(), i64(row));
}

// The per-tensor stores of a tensor in lines wait for all of them, whatever
// part they are in: they are made with its first line.
void Table::finish_lines() {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const bool first = r == 0 || rows_[r - 1].entry != rows_[r].entry;
    if (first && is_line(r)) split_rows_.push_back(i64(r));
  }
  std::sort(split_rows_.begin(), split_rows_.end());
}

}  // namespace fuse
