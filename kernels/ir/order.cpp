#include "fusebook/ir/order.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "fusebook/ir/joined_lists.h"
#include "fusebook/ir/phases.h"
#include "fusebook/ir/shared_memory.h"

namespace fuse {
namespace {

constexpr std::int32_t never = -1;

// The last access to a slot within a part: where the operation begins, and the
// value written.
struct Access {
  std::int32_t operation = never;
  std::source_location place;
};

// One operation, and the call that it belongs to.
struct Operation {
  NodeRange nodes;
  NodeRange call;
  std::vector<StoreEvent> stores;
};

// Stores of results belong to the operation that computes them.
void add_stores(const Program& program, std::vector<Operation>& operations) {
  std::size_t k = 0;
  for (const StoreEvent& event : program.store_events()) {
    const std::int32_t at = event.is_result ? event.value + 1 : event.at;
    if (event.is_result) k = 0;
    while (k + 1 < operations.size() && at > operations[k].nodes.end) ++k;
    operations[k].stores.push_back(event);
    operations[k].stores.back().at =
        std::min(event.at, operations[k].nodes.end);
  }
}

std::vector<Operation> operations_of(const Program& program) {
  const auto end = std::int32_t(program.nodes().size());
  std::vector<std::int32_t> begins(program.operations().begin(),
                                   program.operations().end());
  if (begins.empty()) begins.push_back(0);
  begins.front() = 0;
  if (begins.size() > 1 && begins.back() == end) begins.pop_back();
  begins.push_back(end);
  std::vector<Operation> all;
  const auto calls = program.calls();
  std::size_t call = 0;
  for (std::size_t k = 0; k + 1 < begins.size(); ++k) {
    Operation operation = {{begins[k], begins[k + 1]}, {}, {}};
    while (call < calls.size() && calls[call].end <= operation.nodes.begin) {
      ++call;
    }
    const bool inside =
        call < calls.size() && calls[call].begin <= operation.nodes.begin;
    operation.call = inside ? calls[call] : operation.nodes;
    all.push_back(std::move(operation));
  }
  add_stores(program, all);
  return all;
}

struct Neighbour {
  std::int32_t slot;
  const Overlap* overlap;
};

// Where the part must end, and why.
struct Break {
  std::int32_t at;
  std::string why;
};

class Walk {
 public:
  explicit Walk(const Program& program)
      : program_(program),
        live_(live_values(program)),
        read_last_(slots_read_last(program)),
        reductions_(Phases(program).reductions()),
        overlaps_(find_overlaps(program)),
        neighbours_(program.slots().size()),
        content_(program.slots().size(), -1),
        joined_(program) {
    for (const Overlap& each : overlaps_) {
      neighbours_[each.a.slot].push_back({each.b.slot, &each});
      neighbours_[each.b.slot].push_back({each.a.slot, &each});
    }
  }

  std::vector<ProgramPart> run() {
    const std::vector<Operation> operations = operations_of(program_);
    begin_part(0, "");
    std::size_t k = 0;
    while (k < operations.size()) {
      const std::optional<Break> found = add(operations[k]);
      if (!found) {
        ++k;
        continue;
      }
      while (operations[k].nodes.begin > found->at) undo(operations[--k]);
      parts_.back().end = found->at;
      begin_part(found->at, found->why);
    }
    parts_.back().end = ValueId(program_.nodes().size());
    return std::move(parts_);
  }

 private:
  const Node& node(ValueId id) const { return program_.node(id); }
  bool is_uniform(std::int32_t slot) const {
    return program_.slots()[slot].rate == Rate::uniform;
  }
  std::span<const Neighbour> neighbours(std::int32_t slot) const {
    return neighbours_[slot];
  }

  void begin_part(std::int32_t at, std::string why) {
    parts_.push_back({at, at, std::move(why), {}, {}, {}});
    reads_.assign(program_.slots().size(), {});
    stores_.assign(program_.slots().size(), {});
    holders_.assign(program_.nodes().size(), -1);
    for (std::size_t s = 0; s < content_.size(); ++s) {
      // Blocks do not give back what was stored.
      if (content_[s] < 0 || in_blocks(program_.slots()[s].dtype)) continue;
      holders_[content_[s]] = std::int32_t(s);
    }
    joined_.clear();
  }

  // Moves an operation to the next part instead.
  void undo(const Operation& operation) {
    ProgramPart& part = parts_.back();
    for (const StoreEvent& event : operation.stores) {
      part.stores.pop_back();
      content_[event.slot] = -1;
    }
    for (const ProgramPart& each : parts_) {
      for (const StoreEvent& event : each.stores) {
        content_[event.slot] = event.value;
      }
    }
    std::erase_if(part.carried, [&](const Carried& each) {
      return each.user >= operation.nodes.begin;
    });
    std::erase_if(part.early,
                  [&](ValueId load) { return load >= operation.nodes.begin; });
  }

  // Appends an operation to the part, or returns why it cannot be there.
  std::optional<Break> add(const Operation& operation) {
    read_now_.clear();
    carried_now_.clear();
    std::optional<Break> found = join(operation);
    for (const Read& read : read_now_) {
      if (!found) found = check_read(operation, read);
    }
    for (const StoreEvent& event : operation.stores) {
      if (!found) found = check_store(operation, event);
    }
    if (!found) note(operation);
    return found;
  }

  struct Read {
    std::int32_t slot;
    ValueId load;  // -1 for the contents of a slot since an earlier part
    ValueId by;
  };

  // Joins the lists that an operation combines, represented by slots and
  // values.
  std::optional<Break> join(const Operation& operation) {
    const std::int32_t at = splits_at(operation);
    std::string why;
    for (ValueId id = operation.nodes.begin; id < operation.nodes.end; ++id) {
      const Node& each = node(id);
      for (int k = 0; k < each.arity; ++k) {
        const ValueId list = list_of(each.in[k], id);
        // What nobody stores takes no numbers per tensor from other lists.
        const bool joins = live_[id] || node(each.in[k]).rate == Rate::element;
        if (list < 0 || !joins || !why.empty()) continue;
        why = joined_.join_value(id, list);
      }
    }
    for (const StoreEvent& event : operation.stores) {
      const ValueId value = event.value;
      const ValueId list = list_of(value, value);
      if (list >= 0 && why.empty()) why = joined_.join_slot(event.slot, list);
    }
    if (why.empty() || at <= parts_.back().begin) return std::nullopt;
    return Break{
        at, why + fuse::at_place(", where they meet,", place_of(operation))};
  }

  // Returns what represents the lists of a value in this part, noting its
  // reads.
  ValueId list_of(ValueId value, ValueId user) {
    const Node& from = node(value);
    if (from.op == OpCode::load) {
      read_now_.push_back({from.in[0], value, user});
      return is_uniform(from.in[0]) ? -1 : joined_.of_slot(from.in[0]);
    }
    if (from.arity == 0 || program_.domain(value) < 0) return -1;
    if (value >= parts_.back().begin) return joined_.of_value(value);
    const std::int32_t slot = holders_[value];
    carried_now_.push_back({value, slot, user});
    if (slot < 0) return joined_.of_value(value);
    read_now_.push_back({slot, -1, user});
    return joined_.of_slot(slot);
  }

  // A call stays whole, unless it started the part.
  std::int32_t splits_at(const Operation& operation) const {
    return operation.call.begin > parts_.back().begin ? operation.call.begin
                                                      : operation.nodes.begin;
  }

  static bool is_in_call(const Operation& operation, const Access& access) {
    return access.operation >= operation.call.begin;
  }

  std::optional<Break> check_read(const Operation& operation,
                                  const Read& read) {
    for (const Neighbour& other : neighbours(read.slot)) {
      const Access& store = stores_[other.slot];
      if (store.operation == never) continue;
      const bool inside = is_in_call(operation, store);
      if (inside && !other.overlap->coincident) refuse(*other.overlap);
      return Break{inside ? operation.nodes.begin : operation.call.begin,
                   text(*other.overlap, read.slot, "read",
                        program_.call_place(read.by), "stored", store.place)};
    }
    return std::nullopt;
  }

  std::optional<Break> check_store(const Operation& operation,
                                   const StoreEvent& event) {
    const std::source_location place = program_.call_place(event.value);
    for (const Neighbour& other : neighbours(event.slot)) {
      const Access& store = stores_[other.slot];
      if (store.operation != never) {
        if (is_in_call(operation, store)) refuse(*other.overlap);
        return Break{operation.call.begin,
                     text(*other.overlap, event.slot, "stored", place, "stored",
                          store.place)};
      }
      const bool reads_now = is_read_now(other.slot);
      if (reads_now && !is_uniform(other.slot) && !other.overlap->coincident) {
        refuse(*other.overlap);
      }
      const Access& read = reads_[other.slot];
      if (read.operation == never || is_harmless(event, other)) continue;
      const bool inside = is_in_call(operation, read);
      if (inside && !is_uniform(other.slot) && !is_of_one(*other.overlap)) {
        refuse(*other.overlap);
      }
      return Break{inside ? operation.nodes.begin : operation.call.begin,
                   text(*other.overlap, event.slot, "stored", place, "read",
                        read.place)};
    }
    return std::nullopt;
  }

  // A tensor and itself, or its broadcast: for these, a call that computes all
  // its values before storing them has a defined order.
  bool is_of_one(const Overlap& overlap) const {
    const auto repeats = [&](const MemoryRange& range) {
      return program_.lists()[range.slot].repeats;
    };
    return overlap.coincident || (overlap.a.entry == overlap.b.entry &&
                                  overlap.a.begin == overlap.b.begin &&
                                  repeats(overlap.a) != repeats(overlap.b));
  }

  // Nothing was stored before the slot was read, to be reduced.
  bool is_read_first(std::int32_t slot) const {
    if (read_last_[std::size_t(slot)]) return false;
    const auto& stores = parts_.back().stores;
    return std::all_of(stores.begin(), stores.end(), [&](const auto& event) {
      return event.at > reads_[slot].operation;
    });
  }

  // A number that the first phase reads for the last one.
  bool is_kept(const StoreEvent& event, std::int32_t slot) const {
    const auto first = std::lower_bound(reductions_.begin(), reductions_.end(),
                                        parts_.back().begin);
    return first != reductions_.end() && *first < event.value &&
           is_kept_from(program_, slot, event.slot);
  }

  // Each tensor is read before it is stored: by the same loop, or in a phase
  // before the last one. What is only reduced is read by another loop.
  bool is_harmless(const StoreEvent& event, const Neighbour& read) const {
    if (is_read_first(read.slot)) return true;
    if (is_kept(event, read.slot)) return true;
    return read.overlap->coincident && !is_uniform(read.slot) &&
           read_last_[std::size_t(read.slot)] &&
           joined_.are_joined(event.slot, read.slot);
  }

  bool is_read_now(std::int32_t slot) const {
    return std::any_of(read_now_.begin(), read_now_.end(),
                       [&](const Read& read) { return read.slot == slot; });
  }

  bool overwrites(const Operation& operation, std::int32_t slot) const {
    const auto near = neighbours(slot);
    return std::any_of(operation.stores.begin(), operation.stores.end(),
                       [&](const StoreEvent& event) {
                         return std::any_of(near.begin(), near.end(),
                                            [&](const auto& other) {
                                              return other.slot == event.slot;
                                            });
                       });
  }

  void note(const Operation& operation) {
    ProgramPart& part = parts_.back();
    for (const Read& read : read_now_) {
      if (is_uniform(read.slot) && overwrites(operation, read.slot)) {
        part.early.push_back(read.load);
        continue;
      }
      reads_[read.slot] = {operation.nodes.begin, program_.call_place(read.by)};
    }
    for (const StoreEvent& event : operation.stores) {
      stores_[event.slot] = {operation.nodes.begin,
                             program_.call_place(event.value)};
      content_[event.slot] = event.value;
      part.stores.push_back(event);
    }
    for (const Carried& each : carried_now_) {
      const bool known = std::any_of(
          part.carried.begin(), part.carried.end(),
          [&](const Carried& other) { return other.value == each.value; });
      if (!known) part.carried.push_back(each);
    }
  }

  [[noreturn]] void refuse(const Overlap& overlap) const {
    refuse_overlap(program_, overlap.a, overlap.b);
  }

  std::source_location place_of(const Operation& operation) const {
    return program_.call_place(operation.nodes.end - 1);
  }

  // "params[1] is read at a.cpp:9 and overlaps params[0], stored at a.cpp:8"
  std::string text(const Overlap& overlap, std::int32_t slot, const char* does,
                   const std::source_location& place, const char* did,
                   const std::source_location& before) const {
    const bool first = overlap.a.slot == slot;
    const MemoryRange& now = first ? overlap.a : overlap.b;
    const MemoryRange& other = first ? overlap.b : overlap.a;
    return describe(program_, now) + " is " + at_place(does, place) +
           " and overlaps " + describe(program_, other) + ", " +
           at_place(did, before);
  }

  const Program& program_;
  const std::vector<bool> live_;
  const std::vector<bool> read_last_;
  const std::vector<ValueId> reductions_;  // that something stored depends on
  const std::vector<Overlap> overlaps_;
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<ValueId> content_;  // current value of each slot
  std::vector<ProgramPart> parts_;

  // The part being built.
  std::vector<std::int32_t> holders_;  // slots that held values when it began
  std::vector<Access> reads_;
  std::vector<Access> stores_;
  JoinedLists joined_;

  // The current operation.
  std::vector<Read> read_now_;
  std::vector<Carried> carried_now_;
};

}  // namespace

std::vector<ProgramPart> parts_in_order(const Program& program) {
  return Walk(program).run();
}

}  // namespace fuse
