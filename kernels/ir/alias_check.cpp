#include "fusebook/ir/alias_check.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fusebook/ir/memory_ranges.h"
#include "fusebook/support/sort_runs.h"

namespace fuse {
namespace {

using Range = MemoryRange;

bool has_slot(const Instance& instance, std::int32_t slot) {
  const auto& slots = instance.slots;
  return std::find(slots.begin(), slots.end(), slot) != slots.end();
}

// For a list that a later phase has too, that one speaks; results of reductions
// are no lists.
bool is_elsewhere(const Plan& plan, const Program& program, std::size_t i,
                  std::int32_t slot) {
  if (std::size_t(slot) >= program.slots().size()) return true;
  const int phase = plan.instances[i].phase;
  if (phase + 1 == plan.phases()) return false;
  const bool later =
      std::any_of(plan.instances.begin() + std::ptrdiff_t(i),
                  plan.instances.end(), [&](const Instance& other) {
                    return other.phase > phase && has_slot(other, slot);
                  });
  return later || is_read_first(plan, program, slot);
}

std::vector<Range> collect(const Plan& plan, const Program& program) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const Body& body = plan.bodies[instance.body];
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      const std::int32_t slot = instance.slots[s];
      if (is_elsewhere(plan, program, i, slot)) continue;
      const std::size_t count = program.lists()[slot].count;
      for (std::size_t e = 0; e < count; ++e) {
        Range range = make_range(program, slot, e);
        if (range.begin == range.end) continue;
        range.instance = std::int32_t(i);
        range.stored = body.slots[s].stored;
        ranges.push_back(range);
      }
    }
  }
  return ranges;
}

// Two lists may share a tensor at the same index if all reads come first.
bool harmless(const Program& program, const Range& a, const Range& b) {
  if (a.stored && b.stored) return false;
  if (a.entry != b.entry || a.instance != b.instance) return false;
  // Every tensor reads the number, before and after stores to others.
  if (is_number(program, a) || is_number(program, b)) return false;
  const Range& stored = a.stored ? a : b;
  const Range& read = a.stored ? b : a;
  return program.last_read(read.slot) < program.first_store(stored.slot);
}

// Checks [first, last), ranges of exactly the same bytes.
bool check_equal(const Program& program, const Range* first,
                 const Range* last) {
  // Thousands of entries may read one tensor.
  const auto is_stored = [](const Range& range) { return range.stored; };
  if (std::none_of(first, last, is_stored)) return false;
  bool shared = false;
  for (const Range* a = first; a != last; ++a) {
    for (const Range* b = a + 1; b != last; ++b) {
      if (!a->stored && !b->stored) continue;
      if (!harmless(program, *a, *b)) refuse_overlap(program, *a, *b);
      shared = true;
    }
  }
  return shared;
}

// Returns a stored range, if there is one, else the first.
const Range& representative(const Range* first, const Range* last) {
  const Range* stored =
      std::find_if(first, last, [](const Range& r) { return r.stored; });
  return stored != last ? *stored : *first;
}

// The same for strided tensors: overlapping ranges need not share a byte, and
// equal ones need not be the same tensor.
class StridedCheck {
 public:
  StridedCheck(const Program& program, const std::vector<Range>& sorted)
      : program_(program), ranges_(sorted) {
    for (const Range& range : sorted)
      regions_.push_back(region_of(program, range));
  }

  bool run() {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const Range& range = ranges_[i];
      if (range.stored) refuse_shared_elements(program_, range);
      check_against(stored_, i);
      if (range.stored) check_against(read_, i);
      (range.stored ? stored_ : read_).push_back(i);
    }
    return shared_;
  }

 private:
  // Ranges that ended before this one begins can no longer overlap anything.
  void check_against(std::vector<std::size_t>& open, std::size_t i) {
    const Range& range = ranges_[i];
    std::erase_if(open, [&](std::size_t other) {
      return ranges_[other].end <= range.begin;
    });
    for (const std::size_t other : open) {
      if (!overlap(regions_[other], regions_[i])) continue;
      const Range& first = ranges_[other];
      if (!same_tensor(program_, first, range) ||
          !harmless(program_, first, range)) {
        refuse_overlap(program_, first, range);
      }
      shared_ = true;
    }
  }

  const Program& program_;
  const std::vector<Range>& ranges_;
  std::vector<Region> regions_;
  std::vector<std::size_t> stored_;  // stored ranges that reach to here
  std::vector<std::size_t> read_;
  bool shared_ = false;
};

}  // namespace

bool is_read_first(const Plan& plan, const Program& program,
                   std::int32_t slot) {
  if (plan.phases() == 1) return false;
  const bool last = std::any_of(
      plan.instances.begin(), plan.instances.end(), [&](const Instance& each) {
        return each.phase + 1 == plan.phases() && has_slot(each, slot);
      });
  if (last) return false;
  // Before its own memory is stored, or the program would have been cut.
  if (program.slots()[std::size_t(slot)].rate == Rate::uniform) return true;
  const std::int32_t read = program.last_read(slot);
  return std::all_of(program.stores().begin(), program.stores().end(),
                     [&](const Store& store) {
                       return read < program.first_store(store.slot);
                     });
}

bool check_overlaps(const Plan& plan, const Program& program) {
  std::vector<Range> ranges = collect(plan, program);
  sort_runs(ranges, before);
  const bool strided =
      std::any_of(ranges.begin(), ranges.end(),
                  [](const Range& range) { return range.layout != nullptr; });
  if (strided) return StridedCheck(program, ranges).run();
  bool shared = false;
  const Range* furthest = nullptr;
  const Range* furthest_stored = nullptr;
  const Range* const end = ranges.data() + ranges.size();
  for (const Range* first = ranges.data(); first != end;) {
    const Range* last = first + 1;
    while (last != end && !before(*first, *last)) ++last;
    if (last - first > 1 && check_equal(program, first, last)) shared = true;
    const Range& range = representative(first, last);
    if (furthest_stored != nullptr && furthest_stored->end > range.begin) {
      refuse_overlap(program, *furthest_stored, range);
    }
    if (range.stored && furthest != nullptr && furthest->end > range.begin) {
      refuse_overlap(program, range, *furthest);
    }
    if (furthest == nullptr || range.end > furthest->end) furthest = &range;
    if (range.stored &&
        (furthest_stored == nullptr || range.end > furthest_stored->end)) {
      furthest_stored = &range;
    }
    first = last;
  }
  return shared;
}

}  // namespace fuse
