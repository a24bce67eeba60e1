#include "fusebook/programs/split_program.h"

#include <algorithm>
#include <array>
#include <utility>

#include "fusebook/ir/memory_ranges.h"
#include "fusebook/ops/reductions.h"
#include "fusebook/support/same_bytes.h"
#include "fusebook/trace/program_numbers.h"

namespace fuse {
namespace {

bool same_order(const Program& a, const Program& b) {
  const auto same_event = [](const StoreEvent& x, const StoreEvent& y) {
    return x.slot == y.slot && x.value == y.value && x.at == y.at &&
           x.is_result == y.is_result;
  };
  const auto events = b.store_events();
  return same_bytes(a.operations(), b.operations()) &&
         same_bytes(a.calls(), b.calls()) &&
         std::equal(a.store_events().begin(), a.store_events().end(),
                    events.begin(), events.end(), same_event);
}

bool is_number(const Program& program, ValueId value) {
  return program.domain(value) < 0;
}

TensorList allocate(const ListView& like, SlotInfo shape, const Node& node) {
  const Device device = device_of_memory(shape.memory);
  if (node.rate == Rate::entry) {
    return TensorList::per_tensor(scalars(like.count, DType::float64, device),
                                  "carried");
  }
  std::vector<Tensor> tensors;
  for (std::size_t e = 0; e < like.count; ++e) {
    tensors.push_back(empty({like.numels[e]}, node.dtype, device));
  }
  return TensorList(std::move(tensors), "carried");
}

}  // namespace

// Writes one part as a separate program.
class SplitProgram::Maker {
 public:
  Maker(const SplitProgram& split, const Program& from, std::size_t k,
        Program& to)
      : split_(split),
        from_(from),
        part_(split.parts_[k]),
        to_(to),
        values_(from.nodes().size(), -1) {}

  void make() {
    to_.clear();
    for (const Carried& each : part_.carried) {
      at(each.value) = load(slot_of_carried(each), each.user);
    }
    auto store = part_.stores.begin();
    for (ValueId id = part_.begin; id < part_.end; ++id) {
      while (store != part_.stores.end() && store->at <= id) add(*store++);
      if (from_.node(id).arity > 0) static_cast<void>(value(id));
    }
    while (store != part_.stores.end()) add(*store++);
    // Into memory of their own, and last: what is reduced is read before any store.
    for (ValueId id = part_.begin; id < part_.end; ++id) {
      if (from_.node(id).arity > 0) keep(id);
    }
  }

 private:
  ValueId& at(ValueId value) { return values_[value]; }

  std::int32_t slot(std::int32_t slot) {
    const auto index = std::size_t(slot);
    return to_.slot(from_.lists()[index], from_.slots()[index]);
  }
  std::int32_t slot(const TensorList& list) {
    return to_.slot(list.impl()->view(), list.impl()->info());
  }
  std::int32_t slot_of_carried(const Carried& each) {
    return each.slot >= 0 ? slot(each.slot)
                          : slot(split_.temporaries_.at(each.value));
  }

  ValueId load(std::int32_t slot, ValueId by) {
    return to_.load(slot, from_.place(by));
  }

  ValueId value(ValueId id) {
    if (at(id) < 0) at(id) = make_value(id);
    return at(id);
  }

  ValueId make_value(ValueId id) {
    const Node& node = from_.node(id);
    const auto leaf = std::size_t(node.in[0]);
    const bool own = node.arity > 0 && id >= part_.begin;
    if (const auto read = split_.numbers_.find(id);
        !own && read != split_.numbers_.end()) {
      return to_.scalar(OpCode::argument, {read->second, {}});
    }
    if (const auto result = split_.results_.find(id);
        !own && result != split_.results_.end()) {
      const ListImpl& list = *result->second.loaded;
      return load(to_.slot(list.view(), list.info()), id);
    }
    switch (node.op) {
      case OpCode::load:
        return load(slot(node.in[0]), id);
      case OpCode::constant:
      case OpCode::argument:
        return to_.scalar(node.op, from_.scalars()[leaf]);
      default:
        return apply(id, node);
    }
  }

  ValueId apply(ValueId id, const Node& node) {
    std::array<ValueId, 4> in{};
    bool over_lists = false;
    for (std::size_t k = 0; k < node.arity; ++k) {
      in[k] = value(node.in[k]);
      over_lists = over_lists || !is_number(from_, node.in[k]);
    }
    const bool of_numbers = !over_lists && !is_number(from_, id);
    const std::int32_t shape =
        of_numbers ? slot(split_.shape_of(from_, id)) : -1;
    return to_.append_like(node, std::span(in).first(node.arity), shape,
                           from_.place(id));
  }

  void add(const StoreEvent& event) {
    to_.store_converted(slot(event.slot), value(event.value),
                        from_.place(event.value));
  }

  // Marks a value that a later part needs and that is not stored otherwise.
  void keep(ValueId id) {
    if (const auto result = split_.results_.find(id);
        result != split_.results_.end()) {
      to_.store(slot(result->second.stored), at(id), from_.place(id));
    }
    const auto found = split_.temporaries_.find(id);
    if (found == split_.temporaries_.end()) return;
    to_.store_converted(slot(found->second), at(id), from_.place(id));
  }

  const SplitProgram& split_;
  const Program& from_;
  const ProgramPart& part_;
  Program& to_;
  std::vector<ValueId> values_;
};

SplitProgram::SplitProgram(const Request& request,
                           std::vector<ProgramPart> parts)
    : hash_(request.hash),
      program_(request.program),
      parts_(std::move(parts)),
      programs_(parts_.size()) {
  bound_.assign(program_.lists());
  const auto slots = std::int32_t(program_.slots().size());
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    if (program_.first_store(slot) < 0) continue;
    for (std::size_t e = 0; e < program_.lists()[slot].count; ++e) {
      const MemoryRange range = make_range(program_, slot, e);
      stored_.add(range.begin, range.end);
    }
  }
  stored_.settle();
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    shares_.push_back(is_stored_to(program_, slot));
  }
  find_temporaries(program_);
  find_numbers(program_);
}

bool SplitProgram::is_stored_to(const Program& program, std::int32_t slot) {
  for (std::size_t e = 0; e < program.lists()[slot].count; ++e) {
    const MemoryRange range = make_range(program, slot, e);
    if (stored_.touches(range.begin, range.end)) return true;
  }
  return false;
}

bool SplitProgram::serves(const Request& request) {
  if (request.hash != hash_) return false;
  if (!program_.same_structure(request.program)) return false;
  if (!same_order(program_, request.program)) return false;
  const auto lists = request.program.lists();
  switch (bound_.compare(lists)) {
    case Change::none:
      bound_.rename(lists);
      return true;
    case Change::moved:
      if (!moved_apart(request.program)) return false;
      bound_.move(lists);
      return true;
    case Change::other:
      break;
  }
  return false;
}

bool SplitProgram::moved_apart(const Program& program) {
  bool apart = true;
  bound_.for_each_moved(
      program.lists(), [&](std::size_t s, void* const* from, void* const* to) {
        const std::size_t count = program.lists()[s].count;
        if (!apart || std::equal(from, from + count, to)) return;
        apart = !shares_[s] && !is_stored_to(program, std::int32_t(s));
      });
  return apart;
}

std::size_t SplitProgram::part_of(ValueId value) const {
  const auto after = std::upper_bound(
      parts_.begin(), parts_.end(), value,
      [](ValueId id, const ProgramPart& part) { return id < part.end; });
  return std::size_t(after - parts_.begin());
}

// A slot with as many tensors and, for elements, the same sizes.
std::int32_t SplitProgram::shape_of(const Program& program,
                                    ValueId value) const {
  const Node& node = program.node(value);
  if (node.op == OpCode::load) return node.in[0];
  for (int k = 0; k < node.arity; ++k) {
    const Node& in = program.node(node.in[k]);
    const bool alike = in.rate == node.rate || is_reduction(node.op);
    if (alike && !is_number(program, node.in[k])) {
      return shape_of(program, node.in[k]);
    }
  }
  std::int32_t found = -1;
  for (const StoreEvent& event : program.store_events()) {
    if (event.value == value) return event.slot;
    if (program.domain(event.value) != program.domain(value)) continue;
    const bool fits = program.slots()[event.slot].rate == node.rate;
    if (fits || found < 0) found = event.slot;
  }
  return found;
}

void SplitProgram::find_temporaries(const Program& program) {
  for (const ProgramPart& part : parts_) {
    for (const Carried& each : part.carried) {
      if (each.slot >= 0 || temporaries_.contains(each.value)) continue;
      const auto shape = std::size_t(shape_of(program, each.value));
      temporaries_.emplace(
          each.value, allocate(program.lists()[shape], program.slots()[shape],
                               program.node(each.value)));
    }
  }
}

// Values computed only from numbers that no part stores to are recomputed.
bool SplitProgram::is_fixed(const Program& program, ValueId number) {
  const Node& node = program.node(number);
  if (node.op == OpCode::load) return !shares_[node.in[0]];
  return std::all_of(node.in, node.in + node.arity,
                     [&](ValueId in) { return is_fixed(program, in); });
}

void SplitProgram::add_result(const Program& program, ValueId number) {
  if (results_.contains(number)) return;
  const Tensor memory = empty({}, DType::float64, fuse::device_of(program));
  results_[number] = {TensorList::per_tensor({memory}, "carried"),
                      number_list(memory, "carried")};
}

void SplitProgram::find_numbers(const Program& program) {
  for (const ProgramPart& part : parts_) {
    for (const ValueId load : part.early) numbers_[load] = {};
    for (ValueId id = part.begin; id < part.end; ++id) {
      const Node& node = program.node(id);
      for (int k = 0; k < node.arity; ++k) {
        const ValueId in = node.in[k];
        if (in >= part.begin || !is_number(program, in)) continue;
        if (needs_reduction(program, in)) {
          add_result(program, in);
          continue;
        }
        if (program.node(in).arity > 0 && !is_fixed(program, in)) {
          numbers_[in] = {};
        }
      }
    }
  }
}

void SplitProgram::make_parts(const Program& program) {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    Maker(*this, program, k, programs_[k]).make();
  }
}

void SplitProgram::read_numbers(const Program& program, std::size_t k) {
  if (numbers_.empty()) return;
  for (auto& [value, number] : numbers_) {
    if (part_of(value) == k) number = number_of(program, value);
  }
  Maker(*this, program, k, programs_[k]).make();
}

SplitProgram* SplitStore::find(const Request& request) {
  const auto found =
      std::find_if(programs_.begin(), programs_.end(),
                   [&](const auto& each) { return each->serves(request); });
  if (found == programs_.end()) return nullptr;
  std::rotate(found, found + 1, programs_.end());
  return programs_.back().get();
}

SplitProgram* SplitStore::add(const Request& request) {
  std::vector<ProgramPart> parts = parts_in_order(request.program);
  if (parts.size() == 1 && parts[0].early.empty()) return nullptr;
  if (programs_.size() == most) programs_.erase(programs_.begin());
  programs_.push_back(
      std::make_unique<SplitProgram>(request, std::move(parts)));
  return programs_.back().get();
}

}  // namespace fuse
