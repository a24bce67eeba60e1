#include "output_overlap.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "error.h"

namespace fuse {
namespace {

// The memory of one tensor of an operand.
struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t operand;
  std::size_t entry;
};

std::vector<Range> collect(Operands operands) {
  std::vector<Range> ranges;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]->is_list) continue;
    const ListImpl& list = *operands[k]->list.impl();
    for (std::size_t i = 0; i < list.addresses.size(); ++i) {
      const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[i]);
      const auto size = std::size_t(list.numels[i]) * size_of(list.dtype);
      if (size > 0) ranges.push_back({begin, begin + size, k, i});
    }
  }
  // Outputs come first where they coincide with what is read.
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.operand < b.operand;
  });
  return ranges;
}

// Reading a tensor and then storing into it is what in-place updates do.
bool harmless(const Range& a, const Range& b, std::size_t outputs) {
  const bool same = a.begin == b.begin && a.end == b.end && a.entry == b.entry;
  return same && (a.operand >= outputs || b.operand >= outputs);
}

std::string name(const Callee& callee, Operands operands, const Range& range) {
  return "tensor " + std::to_string(range.entry) + " of " +
         callee.describe(operands, range.operand);
}

}  // namespace

void check_overlap(const Callee& callee, Operands operands) {
  const std::vector<Range> ranges = collect(operands);
  // Ranges that end behind the one in question: usually one or two.
  std::vector<const Range*> open;
  for (const Range& range : ranges) {
    std::erase_if(open, [&](const Range* r) { return r->end <= range.begin; });
    for (const Range* other : open) {
      const bool stored =
          range.operand < callee.outputs || other->operand < callee.outputs;
      if (!stored || harmless(range, *other, callee.outputs)) continue;
      const bool first = range.operand < other->operand;
      const Range& output = first ? range : *other;
      const Range& reader = first ? *other : range;
      throw Error(callee.function() + ": " + name(callee, operands, output) +
                  " is stored but overlaps " + name(callee, operands, reader) +
                  " in memory, at " + at(callee.place) +
                  "; give each tensor memory of its own");
    }
    // A tensor that stands for a whole list is kept once.
    const bool again = !open.empty() && open.back()->begin == range.begin &&
                       open.back()->operand == range.operand &&
                       range.operand >= callee.outputs;
    if (!again) open.push_back(&range);
  }
}

}  // namespace fuse
