#include "fusebook/ir/joined_lists.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace fuse {
namespace {

std::string name(const ListView& list, std::size_t entry) {
  return fmt::format("{}[{}]", list.label != nullptr ? list.label : "list",
                     entry);
}

// Empty if the sizes are equal.
std::string compare_sizes(const ListView& a, const ListView& b) {
  const std::size_t count = std::min(a.count, b.count);
  const auto at = std::mismatch(a.numels, a.numels + count, b.numels);
  if (at.first == a.numels + count) return "";
  const auto e = std::size_t(at.first - a.numels);
  return fmt::format("{} has {} elements but {} has {}", name(a, e),
                     a.numels[e], name(b, e), b.numels[e]);
}

std::string compare_shapes(const ListView& a, const ListView& b) {
  for (std::size_t e = 0; e < std::min(a.count, b.count); ++e) {
    const Layout& x = a.layouts[e];
    const Layout& y = b.layouts[e];
    if (!std::equal(x.sizes, x.sizes + x.rank, y.sizes, y.sizes + y.rank)) {
      return name(a, e) + " and " + name(b, e) +
             " are strided and have different shapes";
    }
  }
  return "";
}

std::string name(const ListView& list) {
  return list.label != nullptr ? list.label : "a list";
}

}  // namespace

JoinedLists::JoinedLists(const Program& program)
    : program_(program), first_value_(Id(program.slots().size())) {
  clear();
}

void JoinedLists::clear() {
  const std::size_t slots = program_.slots().size();
  std::vector<std::int32_t> sized(slots + program_.nodes().size(), -1);
  // Values carried into the next part keep their shapes.
  for (std::size_t id = slots; id < parents_.size(); ++id) {
    sized[id] = sized_[find(Id(id))];
  }
  sized_ = std::move(sized);
  parents_.resize(sized_.size());
  std::iota(parents_.begin(), parents_.end(), 0);
  strided_.assign(parents_.size(), -1);
  in_blocks_.assign(parents_.size(), -1);
  for (std::size_t s = 0; s < slots; ++s) {
    const SlotInfo& info = program_.slots()[s];
    if (info.rate != Rate::element) continue;
    sized_[s] = std::int32_t(s);
    if (info.strided) strided_[s] = std::int32_t(s);
    if (in_blocks(info.dtype)) in_blocks_[s] = std::int32_t(s);
  }
}

JoinedLists::Id JoinedLists::find(Id id) const {
  while (parents_[id] != id) id = parents_[id];
  return id;
}

std::string JoinedLists::join_value(ValueId value, Id with) {
  return join(of_value(value), with);
}

std::string JoinedLists::join_slot(std::int32_t slot, Id with) {
  return join(of_slot(slot), with);
}

std::string JoinedLists::join(Id a, Id b) {
  a = find(a);
  b = find(b);
  if (a == b) return "";
  std::string why = compare(a, b);
  if (!why.empty()) return why;
  const auto to = std::size_t(std::min(a, b));
  const auto from = std::size_t(std::max(a, b));
  parents_[from] = Id(to);
  if (sized_[to] < 0) sized_[to] = sized_[from];
  if (strided_[to] < 0) strided_[to] = strided_[from];
  if (in_blocks_[to] < 0) in_blocks_[to] = in_blocks_[from];
  return "";
}

std::string JoinedLists::compare(Id a, Id b) const {
  const std::int32_t size_a = sized_[a];
  const std::int32_t size_b = sized_[b];
  if (size_a < 0 || size_b < 0) return "";
  const auto lists = program_.lists();
  std::string why = compare_sizes(lists[size_a], lists[size_b]);
  const std::int32_t shape_a = strided_[a];
  const std::int32_t shape_b = strided_[b];
  if (!why.empty()) return why;
  const std::int32_t strided = std::max(shape_a, shape_b);
  const std::int32_t blocks = std::max(in_blocks_[a], in_blocks_[b]);
  if (strided >= 0 && blocks >= 0) {
    return name(lists[strided]) + " is not in row-major order, but " +
           name(lists[blocks]) + " lies in blocks of 8 bits";
  }
  if (shape_a < 0 || shape_b < 0) return "";
  return compare_shapes(lists[shape_a], lists[shape_b]);
}

}  // namespace fuse
