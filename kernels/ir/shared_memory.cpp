#include "fusebook/ir/shared_memory.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "fusebook/ir/with_operands.h"
#include "fusebook/support/sort_runs.h"

namespace fuse {
namespace {

// Slots that stored values are computed from, or stored into.
std::vector<bool> live_slots(const Program& program) {
  const auto nodes = program.nodes();
  const std::vector<bool> live = live_values(program);
  std::vector<bool> slots(program.slots().size(), false);
  for (const StoreEvent& event : program.store_events()) {
    slots[event.slot] = true;
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!live[i] || nodes[i].op != OpCode::load) continue;
    slots[nodes[i].in[0]] = true;
  }
  return slots;
}

std::vector<MemoryRange> collect(const Program& program) {
  const std::vector<bool> live = live_slots(program);
  std::vector<MemoryRange> ranges;
  for (std::size_t s = 0; s < live.size(); ++s) {
    if (!live[s]) continue;
    for (std::size_t e = 0; e < program.lists()[s].count; ++e) {
      MemoryRange range = make_range(program, std::int32_t(s), e);
      if (range.begin == range.end) continue;
      range.stored = program.first_store(range.slot) >= 0;
      ranges.push_back(range);
    }
  }
  sort_runs(ranges, before);
  return ranges;
}

class Sweep {
 public:
  explicit Sweep(const Program& program)
      : program_(program), ranges_(collect(program)) {}

  std::vector<Overlap> run() {
    for (const MemoryRange& range : ranges_) {
      if (range.stored) refuse_shared_elements(program_, range);
      compare(stored_, range);
      if (range.stored) compare(read_, range);
      (range.stored ? stored_ : read_).push_back(&range);
    }
    return std::move(found_);
  }

 private:
  // Ranges that ended before this one begins can no longer overlap anything.
  void compare(std::vector<const MemoryRange*>& open,
               const MemoryRange& range) {
    std::erase_if(open, [&](const MemoryRange* other) {
      return other->end <= range.begin;
    });
    for (const MemoryRange* const other : open) {
      if (share_bytes(*other, range)) add(*other, range);
    }
  }

  bool share_bytes(const MemoryRange& a, const MemoryRange& b) const {
    if (a.layout == nullptr && b.layout == nullptr) return true;
    return overlap(region_of(program_, a), region_of(program_, b));
  }

  void add(const MemoryRange& a, const MemoryRange& b) {
    if (a.slot == b.slot) refuse_overlap(program_, a, b);
    const bool coincident = a.entry == b.entry && same_tensor(program_, a, b);
    const auto key = std::uint64_t(std::min(a.slot, b.slot)) << 32U |
                     std::uint64_t(std::max(a.slot, b.slot));
    const auto [at, is_new] = known_.try_emplace(key, found_.size());
    if (is_new) {
      found_.push_back({a, b, coincident});
    } else if (found_[at->second].coincident && !coincident) {
      found_[at->second] = {a, b, false};
    }
  }

  const Program& program_;
  const std::vector<MemoryRange> ranges_;
  std::vector<const MemoryRange*> stored_;  // stored ranges that reach to here
  std::vector<const MemoryRange*> read_;
  std::unordered_map<std::uint64_t, std::size_t> known_;
  std::vector<Overlap> found_;
};

}  // namespace

std::vector<bool> live_values(const Program& program) {
  std::vector<bool> live(program.nodes().size(), false);
  for (const StoreEvent& event : program.store_events()) {
    live[event.value] = true;
  }
  return with_operands(program, std::move(live));
}

std::vector<Overlap> find_overlaps(const Program& program) {
  return Sweep(program).run();
}

}  // namespace fuse
