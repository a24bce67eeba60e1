#include "fusebook/runtime/address_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "fusebook/ir/alias_check.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

std::string name(const ListView& list, std::size_t entry) {
  return fmt::format("{}[{}]", list.label != nullptr ? list.label : "list",
                     entry);
}

std::string describe(const ListView& list, std::size_t entry) {
  return fmt::format("{} has {} elements", name(list, entry),
                     list.numels[entry]);
}

// Lists of different sizes meet if both use the same per-tensor list.
void check_sizes(const ListView& a, const ListView& b) {
  const auto [at_a, at_b] =
      std::mismatch(a.numels, a.numels + a.count, b.numels);
  if (at_a == a.numels + a.count) return;
  const auto entry = std::size_t(at_a - a.numels);
  throw Error(describe(a, entry) + " but " + describe(b, entry) +
              "; both are updated with the same list of per-tensor "
              "scalars; compile them as two functions");
}

// In lists that are cut into lines, the shapes must be equal too.
void check_shapes(const ListView& a, const ListView& b) {
  if (a.layouts == nullptr || b.layouts == nullptr) return;
  for (std::size_t e = 0; e < a.count; ++e) {
    const Layout& x = a.layouts[e];
    const Layout& y = b.layouts[e];
    if (std::equal(x.sizes, x.sizes + x.rank, y.sizes, y.sizes + y.rank)) {
      continue;
    }
    throw Error(name(a, e) + " and " + name(b, e) +
                " are strided and have different shapes, but both are updated "
                "with the same list (of per-tensor scalars, or of memory used "
                "in two shapes); compile them as two functions");
  }
}

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

Change AddressTable::compare(const Program& program, int threads) const {
  if (threads != threads_) return Change::other;
  return bound_.compare(program.lists());
}

void AddressTable::build(const Plan& plan, const Program& program, int threads,
                         NumberMemory memory) {
  // if something below throws, no half-built table may be in use
  bound_.clear();
  version_ = next_version();
  moved_from_ = 0;
  coincident_ = check_overlaps(plan, program);
  reductions_.build(plan, program, threads);
  numbers_ = reductions_.empty() ? nullptr : memory(reductions_.numbers());
  gather(plan, program);
  share_out_rows(threads);
  find_uses(plan, program);
  threads_ = threads;
  bound_.assign(program.lists());
}

void AddressTable::gather(const Plan& plan, const Program& program) {
  rows_.clear();
  pointers_.clear();
  strides_.clear();
  tensor_rows_.clear();
  instance_first_.clear();
  column_rows_.assign(1, 0);
  strided_ = std::any_of(plan.bodies.begin(), plan.bodies.end(),
                         [](const Body& body) { return body.strided(); });
  phase_bytes_.clear();
  begin_phase(0);
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    begin_phase(std::size_t(plan.instances[i].phase));
    gather_instance(plan, program, i);
  }
  instance_first_.push_back(tensor_rows_.size());
  tensor_rows_.push_back(rows_.size());
}

void AddressTable::begin_phase(std::size_t phase) {
  if (phase < phase_bytes_.size()) return;
  phase_bytes_.resize(phase + 1, 0);
  first_row_ = rows_.size();
}

void AddressTable::gather_instance(const Plan& plan, const Program& program,
                                   std::size_t instance) {
  const Instance& bound = plan.instances[instance];
  const Body& body = plan.bodies[bound.body];
  const auto lists = program.lists();
  const std::size_t slots = bound.slots.size();
  const std::size_t sized = sized_slot(body, bound, program);
  const bool scalars_only = body.slots[sized].rate != Rate::element;
  if (body.has_blocks() && body.strided()) {
    throw Error(
        "lists in blocks of 8 bits meet lists that are not in row-major order "
        "in one operation; make the others contiguous()");
  }
  const ListView& sizes = lists[bound.slots[sized]];
  const ListView* shapes = &sizes;
  for (std::size_t s = sized + 1; s < slots; ++s) {
    if (body.slots[s].rate != Rate::element) continue;
    const ListView& list = lists[bound.slots[s]];
    check_sizes(sizes, list);
    check_shapes(*shapes, list);
    if (list.layouts != nullptr) shapes = &list;
  }
  instance_first_.push_back(tensor_rows_.size());
  const i64 per_element = body.bytes_per_element();
  const i64 per_entry = body.bytes_per_entry();
  for (std::size_t e = 0; e < sizes.count; ++e) {
    const i64 numel = scalars_only ? 0 : sizes.numels[e];
    const auto tensor = i64(tensor_rows_.size());
    const i64 column_row = column_rows_.back() + (bound.by_tensor ? i64(e) : 0);
    const Row row = {numel, 0, tensor, bound.body, int(column_row)};
    tensor_rows_.push_back(rows_.size());
    if (body.strided()) {
      add_lines(row, bound, body, program, e);
    } else {
      add_tensor(row, bound, program, e);
    }
    if (body.reduces()) {
      const Row& first = rows_[tensor_rows_.back()];
      reductions_.set_rows(first.pointers, first.numel, first.instance);
    }
    phase_bytes_.back() += numel * per_element + per_entry;
    phase_bytes_.back() += body.bytes_of_scales(numel);
  }
  column_rows_.push_back(column_rows_.back() +
                         (bound.by_tensor ? i64(sizes.count) : 1));
}

void* AddressTable::address_of(const Program& program, std::int32_t slot,
                               std::size_t e) const {
  const auto index = std::size_t(slot);
  const std::size_t slots = program.slots().size();
  if (index >= slots) return numbers_ + reductions_.place(index - slots, e);
  const Rate rate = program.slots()[index].rate;
  return program.lists()[index].addresses[rate == Rate::uniform ? 0 : e];
}

void AddressTable::add_tensor(const Row& row, const Instance& bound,
                              const Program& program, std::size_t e) {
  rows_.push_back(row);
  rows_.back().pointers = i64(pointers_.size());
  for (const std::int32_t slot : bound.slots) {
    pointers_.push_back(address_of(program, slot, e));
  }
  if (strided_) strides_.resize(pointers_.size(), 1);
}

// Every line of a tensor becomes a row; per-tensor scalars keep their address.
void AddressTable::add_lines(const Row& row, const Instance& bound,
                             const Body& body, const Program& program,
                             std::size_t e) {
  std::size_t ordered = body.slots.size();
  layouts_.clear();
  for (std::size_t s = 0; s < body.slots.size(); ++s) {
    const BodySlot& slot = body.slots[s];
    if (slot.rate != Rate::element) continue;
    const ListView& list = program.lists()[bound.slots[s]];
    if (slot.stored) ordered = std::min(ordered, layouts_.size());
    layouts_.push_back(list.layouts != nullptr ? list.layouts[e] : Layout{});
  }
  if (body.reduces()) {
    cutter_.cut_in_order(layouts_, row.numel);
  } else {
    cutter_.cut(layouts_, ordered < layouts_.size() ? ordered : 0, row.numel);
  }
  cutter_.for_each([&](std::span<const i64> offsets) {
    add_tensor(row, bound, program, e);
    rows_.back().numel = cutter_.length();
    const auto first = std::size_t(rows_.back().pointers);
    std::size_t k = 0;  // index among the slots with elements
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      if (body.slots[s].rate != Rate::element) continue;
      pointers_[first + s] =
          static_cast<char*>(pointers_[first + s]) +
          offsets[k] * i64(size_of(body.slots[s].stored_dtype()));
      strides_[first + s] = cutter_.strides()[k++];
    }
  });
}

// True if the row is one of several of its tensor.
bool AddressTable::is_line(std::size_t row) const {
  const auto tensor = std::size_t(rows_[row].entry);
  return tensor_rows_[tensor + 1] - tensor_rows_[tensor] > 1;
}

// The per-tensor stores of a tensor cut into lines wait for all lines, in
// whatever part: they are done with its first line.
void AddressTable::share_out_rows(int threads) {
  share_out(std::span(rows_).subspan(first_row_), threads, parts_);
  const auto first = i64(first_row_);
  auto& split = parts_.split_rows;
  for (Part& part : parts_.parts) {
    part.row += first;
    part.last_row += first;
  }
  for (i64& row : split) row += first;
  if (!strided_) return;
  std::erase_if(split, [&](i64 row) { return is_line(std::size_t(row)); });
  for (std::size_t t = 0; t + 1 < tensor_rows_.size(); ++t) {
    const std::size_t row = tensor_rows_[t];
    if (row >= first_row_ && is_line(row)) split.push_back(i64(row));
  }
  std::sort(split.begin(), split.end());
}

void AddressTable::find_uses(const Plan& plan, const Program& program) {
  uses_.clear();
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const Body& body = plan.bodies[instance.body];
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      const BodySlot& slot = body.slots[s];
      const auto list = std::size_t(instance.slots[s]);
      if (list >= program.lists().size()) continue;  // a result
      uses_.push_back(
          {list, i, s, instance.slots.size(), slot.stored, slot.rate});
    }
  }
  std::stable_sort(uses_.begin(), uses_.end(),
                   [](const Use& a, const Use& b) { return a.list < b.list; });
  first_use_.clear();
  for (std::size_t u = 0; u < uses_.size(); ++u) {
    while (first_use_.size() <= uses_[u].list) first_use_.push_back(u);
  }
  first_use_.resize(program.lists().size() + 1, uses_.size());
  std::vector<MovedLists::List> lists;
  for (const Use& use : uses_) {
    if (is_read_first(plan, program, std::int32_t(use.list))) continue;
    const SlotInfo& info = program.slots()[use.list];
    if (info.dtype == DType::position) continue;  // in no memory
    const bool known = !lists.empty() && lists.back().index == use.list;
    if (!known) lists.push_back({use.list, false, size_of(info.dtype)});
    lists.back().stored |= use.stored;
  }
  moved_lists_.assign(lists);
}

std::span<const AddressTable::Use> AddressTable::uses_of(
    std::size_t list) const {
  return std::span(uses_).subspan(first_use_[list],
                                  first_use_[list + 1] - first_use_[list]);
}

// False if everything must be compared with everything.
bool AddressTable::moved_apart(const Program& program) {
  if (coincident_) return false;
  moved_now_.clear();
  bound_.for_each_moved(program.lists(),
                        [&](std::size_t l, void* const* from, void* const*) {
                          moved_now_.push_back({l, from});
                        });
  return moved_lists_.are_apart(program, moved_now_);
}

void AddressTable::move(const Plan& plan, const Program& program) {
  if (!moved_apart(program)) {
    coincident_ = check_overlaps(plan, program);
    moved_lists_.forget();
  }
  moved_ = {pointers_.size(), 0};
  bound_.for_each_moved(program.lists(),
                        [&](std::size_t l, void* const* from, void* const*) {
                          const ListView& to = program.lists()[l];
                          for (const Use& use : uses_of(l)) {
                            // A number that all tensors read is in all rows.
                            if (strided_ || use.rate == Rate::uniform) {
                              move_lines(use, from, to);
                            } else {
                              move_list(use, from, to);
                            }
                          }
                        });
  if (moved_.end == 0) moved_ = {};  // nothing that a kernel reads
  bound_.move(program.lists());
  moved_from_ = version_;
  version_ = next_version();
}

void AddressTable::widen_moved(std::size_t begin, std::size_t end) {
  moved_.begin = std::min(moved_.begin, begin);
  moved_.end = std::max(moved_.end, end);
}

// One row per tensor, with one address per list.
void AddressTable::move_list(const Use& use, void* const* from,
                             const ListView& to) {
  const std::size_t first = instance_first_[use.instance];
  if (first == instance_first_[use.instance + 1]) return;
  const std::size_t row = tensor_rows_[first];
  const std::size_t begin = std::size_t(rows_[row].pointers) + use.slot;
  const std::size_t width = use.width;
  std::size_t first_moved = to.count;
  std::size_t last_moved = 0;
  void** const pointers = pointers_.data() + begin;
  for (std::size_t e = 0; e < to.count; ++e) {
    if (from[e] == to.addresses[e]) continue;
    pointers[e * width] = to.addresses[e];
    first_moved = std::min(first_moved, e);
    last_moved = e;
  }
  if (first_moved == to.count) return;
  widen_moved(begin + first_moved * width, begin + last_moved * width + 1);
}

// Every line keeps its offset from the first element of its tensor.
void AddressTable::move_lines(const Use& use, void* const* from,
                              const ListView& to) {
  const bool everywhere = use.rate == Rate::uniform;
  const std::size_t first = instance_first_[use.instance];
  for (std::size_t e = 0; e < to.count; ++e) {
    if (from[e] == to.addresses[e]) continue;
    const std::uintptr_t by = number(to.addresses[e]) - number(from[e]);
    const std::size_t begin = first + (everywhere ? 0 : e);
    const std::size_t end =
        everywhere ? instance_first_[use.instance + 1] : begin + 1;
    for (std::size_t r = tensor_rows_[begin]; r < tensor_rows_[end]; ++r) {
      const std::size_t at = std::size_t(rows_[r].pointers) + use.slot;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): see above.
      pointers_[at] = reinterpret_cast<void*>(number(pointers_[at]) + by);
      widen_moved(at, at + 1);
    }
  }
}

}  // namespace fuse
