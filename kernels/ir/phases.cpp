#include "fusebook/ir/phases.h"

#include <algorithm>
#include <utility>

#include "fusebook/ir/shared_memory.h"
#include "fusebook/ir/with_operands.h"
#include "fusebook/ops/reductions.h"

namespace fuse {

namespace {

// Values that what is in memory at the end depends on.
std::vector<bool> needed_values(const Program& program) {
  std::vector<bool> needed(program.nodes().size(), false);
  for (const Store& store : program.stores()) {
    needed[std::size_t(store.value)] = true;
  }
  return with_operands(program, std::move(needed));
}

// True for what one operation computes and a later one uses: between them a
// program may be cut, and then it is stored.
bool outlives(const Program& program, ValueId value, ValueId user) {
  if (program.node(value).arity == 0) return false;
  const auto begins = program.operations();
  const auto next = std::upper_bound(begins.begin(), begins.end(), value);
  return next != begins.end() && *next <= user;
}

}  // namespace

Phases::Phases(const Program& program) : phase_of_(program.nodes().size(), 0) {
  if (program.reductions().empty()) return;
  for (std::size_t id = 0; id < phase_of_.size(); ++id) {
    const Node& node = program.node(ValueId(id));
    for (int k = 0; k < node.arity; ++k) {
      phase_of_[id] = std::max(phase_of_[id], of(node.in[k]));
    }
    if (is_reduction(node.op)) ++phase_of_[id];
  }
  for (const Store& store : program.stores()) {
    last_ = std::max(last_, of(store.value));
  }
  const std::vector<bool> needed = needed_values(program);
  for (const ValueId id : program.reductions()) {
    if (needed[std::size_t(id)]) reductions_.push_back(id);
  }
  if (last_ > 0) find_kept(program, needed);
}

// Whether they share memory is no part of a program's structure. Of the stored
// numbers only the dtype counts, so one slot stands for all of a dtype.
void Phases::find_kept(const Program& program,
                       const std::vector<bool>& needed) {
  const auto slots = program.slots();
  std::vector<std::int32_t> stored;
  for (const Store& store : program.stores()) {
    const SlotInfo& info = slots[std::size_t(store.slot)];
    const auto is_like = [&](std::int32_t other) {
      return slots[std::size_t(other)].dtype == info.dtype;
    };
    if (info.rate == Rate::entry && std::ranges::none_of(stored, is_like)) {
      stored.push_back(store.slot);
    }
  }
  kept_places_.assign(slots.size(), -1);
  for (std::size_t id = 0; id < needed.size(); ++id) {
    const Node& node = program.node(ValueId(id));
    if (!needed[id] || node.op != OpCode::load) continue;
    const std::int32_t slot = node.in[0];
    std::int32_t& place = kept_places_[std::size_t(slot)];
    const auto may_change = [&](std::int32_t other) {
      return is_kept_from(program, slot, other);
    };
    if (place >= 0 || std::ranges::none_of(stored, may_change)) continue;
    place = std::int32_t(kept_.size());
    kept_.push_back(slot);
  }
}

bool is_kept_from(const Program& program, std::int32_t number,
                  std::int32_t stored) {
  const SlotInfo& read = program.slots()[std::size_t(number)];
  const SlotInfo& written = program.slots()[std::size_t(stored)];
  return read.rate == Rate::uniform && written.rate == Rate::entry &&
         read.dtype == written.dtype;
}

// A store that a later one replaces counts, too: the program may be cut between
// them.
std::vector<bool> slots_read_last(const Program& program) {
  std::vector<bool> last(program.nodes().size(), false);
  for (const StoreEvent& event : program.store_events()) {
    last[std::size_t(event.value)] = true;
  }
  std::vector<bool> slots(program.slots().size(), false);
  const std::vector<bool> needed = live_values(program);
  for (std::size_t id = needed.size(); id-- > 0;) {
    if (!needed[id]) continue;
    const Node& node = program.node(ValueId(id));
    for (int k = 0; k < node.arity; ++k) {
      const bool reduced = !last[id] || is_reduction(node.op);
      if (!reduced || outlives(program, node.in[k], ValueId(id))) {
        last[std::size_t(node.in[k])] = true;
      }
    }
    if (last[id] && node.op == OpCode::load) {
      slots[std::size_t(node.in[0])] = true;
    }
  }
  return slots;
}

}  // namespace fuse
