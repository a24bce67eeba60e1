#include "fusebook/runtime/address_table.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "fusebook/ir/alias_check.h"
#include "fusebook/layout/memory_overlap.h"
#include "fusebook/support/error.h"

namespace fuse {
namespace {

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

std::uint64_t next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

std::uintptr_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// Bytes from the first element of a tensor to behind its last one.
std::size_t extent_of(const ListView& list, std::size_t e, std::size_t size) {
  const std::int64_t elements = list.layouts != nullptr
                                    ? extent(list.numels[e], list.layouts[e])
                                    : list.numels[e];
  return std::size_t(elements) * size;
}

}  // namespace

Change AddressTable::compare(const Program& program, int threads) const {
  if (threads != threads_) return Change::other;
  return bound_.compare(program.lists());
}

void AddressTable::build(const Plan& plan, const Program& program,
                         int threads) {
  bound_.clear();  // a throw below must not leave half a table in use
  version_ = next_version();
  moved_from_ = 0;
  stored_known_ = false;
  coincident_ = check_overlaps(plan, program);
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
  bytes_ = 0;
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    gather_instance(plan, program, i);
  }
  instance_first_.push_back(tensor_rows_.size());
  tensor_rows_.push_back(rows_.size());
}

void AddressTable::gather_instance(const Plan& plan, const Program& program,
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
    bytes_ += numel * per_element + per_entry;
  }
  column_rows_.push_back(column_rows_.back() +
                         (bound.by_tensor ? i64(sizes.count) : 1));
}

void AddressTable::add_tensor(const Row& row, const Instance& bound,
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
void AddressTable::add_lines(const Row& row, const Instance& bound,
                             const Body& body, const Program& program,
                             std::size_t e) {
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

// One of several rows of its tensor.
bool AddressTable::is_line(std::size_t row) const {
  const auto tensor = std::size_t(rows_[row].entry);
  return tensor_rows_[tensor + 1] - tensor_rows_[tensor] > 1;
}

// The per-tensor stores of a tensor in lines wait for all of them, whatever
// part they are in: they are made with its first line.
void AddressTable::share_out_rows(int threads) {
  share_out(rows_, threads, parts_);
  if (!strided_) return;
  auto& split = parts_.split_rows;
  std::erase_if(split, [&](i64 row) { return is_line(std::size_t(row)); });
  for (std::size_t t = 0; t + 1 < tensor_rows_.size(); ++t) {
    const std::size_t row = tensor_rows_[t];
    if (is_line(row)) split.push_back(i64(row));
  }
  std::sort(split.begin(), split.end());
}

void AddressTable::find_uses(const Plan& plan, const Program& program) {
  uses_.clear();
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const Body& body = plan.bodies[std::size_t(instance.body)];
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      const BodySlot& slot = body.slots[s];
      uses_.push_back({std::size_t(instance.slots[s]), i, s, slot.stored,
                       slot.rate, size_of(slot.dtype)});
    }
  }
  std::stable_sort(uses_.begin(), uses_.end(),
                   [](const Use& a, const Use& b) { return a.list < b.list; });
  first_use_.clear();
  for (std::size_t u = 0; u < uses_.size(); ++u) {
    while (first_use_.size() <= uses_[u].list) first_use_.push_back(u);
  }
  first_use_.resize(program.lists().size() + 1, uses_.size());
}

std::span<const AddressTable::Use> AddressTable::uses_of(
    std::size_t list) const {
  return std::span(uses_).subspan(first_use_[list],
                                  first_use_[list + 1] - first_use_[list]);
}

void AddressTable::find_stored(const Program& program) {
  stored_.clear();
  for (const Use& use : uses_) {
    if (!use.stored) continue;
    const ListView& list = program.lists()[use.list];
    for (std::size_t e = 0; e < list.count; ++e) {
      const std::uintptr_t begin = number(list.addresses[e]);
      stored_.add(begin, begin + extent_of(list, e, use.element_size));
    }
  }
  stored_.settle();
  stored_known_ = true;
}

// True when what has moved is only read, and shares no byte with anything that
// is stored: nothing else has to be compared then.
bool AddressTable::moved_apart(const Program& program) {
  if (coincident_) return false;
  bool apart = true;
  bound_.for_each_moved(
      program.lists(), [&](std::size_t l, void* const* from, void* const* to) {
        const ListView& list = program.lists()[l];
        for (const Use& use : uses_of(l)) {
          if (use.stored)
            apart = apart && std::equal(from, from + list.count, to);
          if (!apart) return;
          if (!stored_known_) find_stored(program);
          for (std::size_t e = 0; e < list.count; ++e) {
            if (from[e] == to[e]) continue;
            const std::uintptr_t begin = number(to[e]);
            const std::size_t bytes = extent_of(list, e, use.element_size);
            apart = apart && !stored_.touches(begin, begin + bytes);
          }
        }
      });
  return apart;
}

void AddressTable::move(const Plan& plan, const Program& program) {
  if (!moved_apart(program)) {
    coincident_ = check_overlaps(plan, program);
    stored_known_ = false;
  }
  moved_ = {pointers_.size(), 0};
  bound_.for_each_moved(
      program.lists(), [&](std::size_t l, void* const* from, void* const* to) {
        const std::size_t count = program.lists()[l].count;
        for (const Use& use : uses_of(l)) {
          for (std::size_t e = 0; e < count; ++e) {
            if (from[e] != to[e])
              move_tensor(use, e, number(to[e]) - number(from[e]));
          }
        }
      });
  if (moved_.end == 0) moved_ = {};  // nothing that a kernel looks at
  bound_.move(program.lists());
  moved_from_ = version_;
  version_ = next_version();
}

void AddressTable::move_tensor(const Use& use, std::size_t e,
                               std::uintptr_t by) {
  // A number that all tensors read stands in all rows.
  const bool everywhere = use.rate == Rate::uniform;
  const std::size_t first = instance_first_[use.instance];
  const std::size_t begin = first + (everywhere ? 0 : e);
  const std::size_t end =
      everywhere ? instance_first_[use.instance + 1] : begin + 1;
  for (std::size_t r = tensor_rows_[begin]; r < tensor_rows_[end]; ++r) {
    const std::size_t at = std::size_t(rows_[r].pointers) + use.slot;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a line keeps its distance.
    pointers_[at] = reinterpret_cast<void*>(number(pointers_[at]) + by);
    moved_.begin = std::min(moved_.begin, at);
    moved_.end = std::max(moved_.end, at + 1);
  }
}

}  // namespace fuse
