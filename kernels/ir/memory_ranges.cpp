#include "fusebook/ir/memory_ranges.h"

#include <fmt/core.h>

#include "fusebook/support/error.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

std::size_t element_size(const Program& program, const MemoryRange& range) {
  return size_of(program.slots()[range.slot].dtype);
}

std::int64_t numel(const Program& program, const MemoryRange& range) {
  return program.lists()[range.slot].numels[range.entry];
}

}  // namespace

MemoryRange make_range(const Program& program, std::int32_t slot,
                       std::size_t entry) {
  const ListView& list = program.lists()[slot];
  const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[entry]);
  MemoryRange range{begin, begin, entry, slot, -1, false, nullptr};
  std::int64_t elements = list.numels[entry];
  if (list.layouts != nullptr) {
    range.layout = &list.layouts[entry];
    elements = extent(elements, *range.layout);
  }
  range.end += bytes_of(program.slots()[slot].dtype, elements);
  return range;
}

Region region_of(const Program& program, const MemoryRange& range) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it came from an address.
  const auto* const begin = reinterpret_cast<const void*>(range.begin);
  if (in_blocks(program.slots()[range.slot].dtype)) {
    const auto bytes = std::int64_t(range.end - range.begin);
    return make_region(begin, bytes, nullptr, 1);
  }
  return make_region(begin, numel(program, range), range.layout,
                     element_size(program, range));
}

bool same_tensor(const Program& program, const MemoryRange& a,
                 const MemoryRange& b) {
  return a.begin == b.begin && numel(program, a) == numel(program, b) &&
         element_size(program, a) == element_size(program, b) &&
         same_places(a.layout, b.layout);
}

bool is_number(const Program& program, const MemoryRange& range) {
  return program.slots()[range.slot].rate == Rate::uniform;
}

std::string describe(const Program& program, const MemoryRange& range) {
  const ListView& list = program.lists()[range.slot];
  if (is_number(program, range)) {
    return list.label != nullptr ? list.label : "a number";
  }
  const std::string label = list.label != nullptr ? list.label : "list";
  return fmt::format("{}[{}]", label, range.entry);
}

std::string at_place(const char* what, const std::source_location& place) {
  if (place.line() == 0) return "";
  return fmt::format("{} at {}", what, at(place));
}

void refuse_overlap(const Program& program, const MemoryRange& a,
                    const MemoryRange& b) {
  const MemoryRange& stored = a.stored ? a : b;
  const MemoryRange& other = a.stored ? b : a;
  const std::string first =
      at_place("stored", program.store_place(stored.slot));
  const std::string second =
      other.stored ? at_place(", stored", program.store_place(other.slot))
                   : at_place(", read", program.read_place(other.slot));
  throw Error(describe(program, stored) + " is stored but overlaps " +
              describe(program, other) + " in memory" +
              (first.empty() ? "" : " (" + first + second + ")") +
              ", so the result would depend on the order; give each tensor "
              "its own memory (clone one of them)");
}

void refuse_shared_elements(const Program& program, const MemoryRange& range) {
  if (range.layout == nullptr || !overlaps_itself(*range.layout)) return;
  const std::string place = at_place("stored", program.store_place(range.slot));
  throw Error(describe(program, range) +
              " is stored but several of its elements share memory" +
              (place.empty() ? "" : " (" + place + ")") +
              ": it was made by expand; store into a clone of it");
}

}  // namespace fuse
