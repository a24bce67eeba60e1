#include "fusebook/foreach/output_aliasing.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fusebook/support/error.h"
#include "fusebook/tensor/tensor_layout.h"

namespace fuse {
namespace {

// The memory of one tensor of an operand.
struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t operand;
  std::size_t entry;
  const TensorImpl* tensor;
};

std::vector<Range> collect(const Callee& callee, Operands operands,
                           std::span<const Element> results) {
  std::vector<Range> ranges;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool plays = k < callee.outputs || std::any_of(
                                                 results.begin(), results.end(),
                                                 [&](const Element& each) {
                                                   return each.comes_from(k);
                                                 });
    if (!plays || !operands[k]->is_list) continue;
    ListImpl& list = *operands[k]->list.impl();
    for (std::size_t i = 0; i < list.addresses.size(); ++i) {
      const TensorImpl& tensor = *list.handles()[i].impl();
      const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
      const std::size_t size = extent_bytes(tensor);
      if (size > 0) ranges.push_back({begin, begin + size, k, i, &tensor});
    }
  }
  // On ties, outputs sort before the operands that are read.
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.operand < b.operand;
  });
  return ranges;
}

bool same_tensor(const Range& a, const Range& b) {
  const Layout layout_a = layout_of(*a.tensor);
  const Layout layout_b = layout_of(*b.tensor);
  return a.begin == b.begin && a.end == b.end &&
         same_places(&layout_a, &layout_b);
}

// Reading a tensor and then storing into it is a normal in-place update.
bool harmless(const Range& a, const Range& b, std::size_t outputs) {
  return a.entry == b.entry && same_tensor(a, b) &&
         (a.operand >= outputs || b.operand >= outputs);
}

std::string name(const Callee& callee, Operands operands, const Range& range) {
  return fmt::format("tensor {} of {}", range.entry,
                     callee.describe(operands, range.operand));
}

}  // namespace

void check_overlap(const Callee& callee, Operands operands,
                   std::span<const Element> results) {
  const std::vector<Range> ranges = collect(callee, operands, results);
  for (const Range& range : ranges) {
    if (range.operand >= callee.outputs) continue;
    check_storable(*range.tensor,
                   (callee.function() + ": " + name(callee, operands, range) +
                    ", at " + callee.where())
                       .c_str());
  }
  // Ranges that end after the start of the current one: usually one or two.
  std::vector<const Range*> open;
  for (const Range& range : ranges) {
    std::erase_if(open, [&](const Range* r) { return r->end <= range.begin; });
    for (const Range* other : open) {
      const bool stored =
          range.operand < callee.outputs || other->operand < callee.outputs;
      if (!stored || harmless(range, *other, callee.outputs)) continue;
      if (!share_bytes(*range.tensor, *other->tensor)) continue;
      const bool first = range.operand < other->operand;
      const Range& output = first ? range : *other;
      const Range& reader = first ? *other : range;
      throw Error(fmt::format(
          "{}: {} is stored but overlaps {} in memory, at {}; give each tensor "
          "its own memory",
          callee.function(), name(callee, operands, output),
          name(callee, operands, reader), callee.where()));
    }
    // A tensor repeated for a whole list is kept once.
    const bool again = !open.empty() && same_tensor(*open.back(), range) &&
                       open.back()->operand == range.operand &&
                       range.operand >= callee.outputs;
    if (!again) open.push_back(&range);
  }
}

}  // namespace fuse
