#include "hazards.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "error.h"

namespace fuse {
namespace {

// The memory of one tensor in one slot.
struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t entry;
  std::int32_t slot;
  std::int32_t instance;
  bool stored;
};

std::vector<Range> collect(const Plan& plan, const Program& program) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const Body& body = plan.bodies[std::size_t(instance.body)];
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      const ListView& list = program.lists()[std::size_t(instance.slots[s])];
      const std::size_t size = size_of(body.slots[s].dtype);
      for (std::size_t e = 0; e < list.count; ++e) {
        const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[e]);
        const std::uintptr_t end = begin + std::size_t(list.numels[e]) * size;
        if (begin == end) continue;
        ranges.push_back({begin, end, e, instance.slots[s], std::int32_t(i),
                          body.slots[s].stored});
      }
    }
  }
  return ranges;
}

std::string describe(const Program& program, const Range& range) {
  const ListView& list = program.lists()[std::size_t(range.slot)];
  const std::string label = list.label != nullptr ? list.label : "list";
  return label + "[" + std::to_string(range.entry) + "]";
}

std::string at(const char* what, const std::source_location& place) {
  if (place.line() == 0) return "";
  return std::string(what) + " at " + place.file_name() + ":" +
         std::to_string(place.line());
}

[[noreturn]] void refuse(const Program& program, const Range& a,
                         const Range& b) {
  const Range& stored = a.stored ? a : b;
  const Range& other = a.stored ? b : a;
  const std::string first = at("stored", program.store_place(stored.slot));
  const std::string second =
      other.stored ? at(", stored", program.store_place(other.slot))
                   : at(", read", program.read_place(other.slot));
  throw Error(describe(program, stored) + " is stored but overlaps " +
              describe(program, other) + " in memory" +
              (first.empty() ? "" : " (" + first + second + ")") +
              ", so the result would depend on the order; give each "
              "tensor memory of its own (clone one of them)");
}

// Two lists may share a tensor at one place, if all reads come first.
bool harmless(const Program& program, const Range& a, const Range& b) {
  if (a.stored && b.stored) return false;
  if (a.entry != b.entry || a.instance != b.instance) return false;
  const Range& stored = a.stored ? a : b;
  const Range& read = a.stored ? b : a;
  return program.last_read(read.slot) < program.first_store(stored.slot);
}

// All ranges of [first, last) are the same bytes.
bool check_equal(const Program& program, const Range* first,
                 const Range* last) {
  // Thousands of entries may read one tensor.
  const auto is_stored = [](const Range& range) { return range.stored; };
  if (std::none_of(first, last, is_stored)) return false;
  bool shared = false;
  for (const Range* a = first; a != last; ++a) {
    for (const Range* b = a + 1; b != last; ++b) {
      if (!a->stored && !b->stored) continue;
      if (!harmless(program, *a, *b)) refuse(program, *a, *b);
      shared = true;
    }
  }
  return shared;
}

// Brings a stored range, if there is one, to the front.
const Range& representative(const Range* first, const Range* last) {
  const Range* stored =
      std::find_if(first, last, [](const Range& r) { return r.stored; });
  return stored != last ? *stored : *first;
}

}  // namespace

bool check_overlaps(const Plan& plan, const Program& program) {
  std::vector<Range> ranges = collect(plan, program);
  const auto before = [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  };
  std::sort(ranges.begin(), ranges.end(), before);
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
      refuse(program, *furthest_stored, range);
    }
    if (range.stored && furthest != nullptr && furthest->end > range.begin) {
      refuse(program, range, *furthest);
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
