#include "hazards.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "error.h"
#include "regions.h"

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
  const Layout* layout;  // null in row-major order
};

Range make_range(const ListView& list, std::size_t e, std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[e]);
  Range range{begin, begin, e, -1, -1, false, nullptr};
  std::int64_t elements = list.numels[e];
  if (list.layouts != nullptr) {
    range.layout = &list.layouts[e];
    elements = extent(elements, *range.layout);
  }
  range.end += std::size_t(elements) * size;
  return range;
}

std::vector<Range> collect(const Plan& plan, const Program& program) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < plan.instances.size(); ++i) {
    const Instance& instance = plan.instances[i];
    const Body& body = plan.bodies[std::size_t(instance.body)];
    for (std::size_t s = 0; s < body.slots.size(); ++s) {
      const ListView& list = program.lists()[std::size_t(instance.slots[s])];
      const std::size_t size = size_of(body.slots[s].dtype);
      for (std::size_t e = 0; e < list.count; ++e) {
        Range range = make_range(list, e, size);
        if (range.begin == range.end) continue;
        range.slot = instance.slots[s];
        range.instance = std::int32_t(i);
        range.stored = body.slots[s].stored;
        ranges.push_back(range);
      }
    }
  }
  return ranges;
}

bool is_number(const Program& program, const Range& range) {
  return program.slots()[std::size_t(range.slot)].rate == Rate::uniform;
}

std::string describe(const Program& program, const Range& range) {
  const ListView& list = program.lists()[std::size_t(range.slot)];
  if (is_number(program, range)) {
    return list.label != nullptr ? list.label : "a number";
  }
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
  // Every tensor reads it, before and after others were stored.
  if (is_number(program, a) || is_number(program, b)) return false;
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

bool before(const Range& a, const Range& b) {
  return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
}

// The same where tensors have strides: ranges that overlap need not have a byte
// in common, and equal ones need not be the same tensor.
class StridedCheck {
 public:
  StridedCheck(const Program& program, const std::vector<Range>& sorted)
      : program_(program), ranges_(sorted) {
    for (const Range& range : sorted) regions_.push_back(region_of(range));
  }

  bool run() {
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const Range& range = ranges_[i];
      if (range.stored) refuse_itself(range);
      check_against(stored_, i);
      if (range.stored) check_against(read_, i);
      (range.stored ? stored_ : read_).push_back(i);
    }
    return shared_;
  }

 private:
  std::size_t size_of_element(const Range& range) const {
    return size_of(program_.slots()[std::size_t(range.slot)].dtype);
  }
  std::int64_t numel(const Range& range) const {
    return program_.lists()[std::size_t(range.slot)].numels[range.entry];
  }

  Region region_of(const Range& range) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it came from an address.
    return make_region(reinterpret_cast<const void*>(range.begin), numel(range),
                       range.layout, size_of_element(range));
  }

  void refuse_itself(const Range& range) const {
    if (range.layout == nullptr || !overlaps_itself(*range.layout)) return;
    const std::string place = at("stored", program_.store_place(range.slot));
    throw Error(describe(program_, range) +
                " is stored but several of its elements share memory" +
                (place.empty() ? "" : " (" + place + ")") +
                ": it was made by expand; store into a clone of it");
  }

  bool same_tensor(const Range& a, const Range& b) const {
    return a.begin == b.begin && numel(a) == numel(b) &&
           size_of_element(a) == size_of_element(b) &&
           same_places(a.layout, b.layout);
  }

  // All that ended before will meet nothing any more.
  void check_against(std::vector<std::size_t>& open, std::size_t i) {
    const Range& range = ranges_[i];
    std::erase_if(open, [&](std::size_t other) {
      return ranges_[other].end <= range.begin;
    });
    for (const std::size_t other : open) {
      if (!overlap(regions_[other], regions_[i])) continue;
      const Range& first = ranges_[other];
      if (!same_tensor(first, range) || !harmless(program_, first, range)) {
        refuse(program_, first, range);
      }
      shared_ = true;
    }
  }

  const Program& program_;
  const std::vector<Range>& ranges_;
  std::vector<Region> regions_;
  std::vector<std::size_t> stored_;  // ranges that reach to here
  std::vector<std::size_t> read_;
  bool shared_ = false;
};

}  // namespace

bool check_overlaps(const Plan& plan, const Program& program) {
  std::vector<Range> ranges = collect(plan, program);
  std::sort(ranges.begin(), ranges.end(), before);
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
