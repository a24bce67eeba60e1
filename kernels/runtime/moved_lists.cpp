#include "fusebook/runtime/moved_lists.h"

#include <algorithm>
#include <utility>

#include "fusebook/layout/memory_overlap.h"

namespace fuse {
namespace {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

Range range_of(const ListView& list, std::size_t e, std::size_t element_size) {
  const std::int64_t elements = list.layouts != nullptr
                                    ? extent(list.numels[e], list.layouts[e])
                                    : list.numels[e];
  const auto begin = reinterpret_cast<std::uintptr_t>(list.addresses[e]);
  return {begin, begin + std::size_t(elements) * element_size};
}

// Adds the memory of a list; returns its size in bytes.
std::uintptr_t add(const ListView& list, std::size_t element_size,
                   StoredMemory& to) {
  std::uintptr_t bytes = 0;
  for (std::size_t e = 0; e < list.count; ++e) {
    const Range range = range_of(list, e, element_size);
    to.add(range.begin, range.end);
    bytes += range.end - range.begin;
  }
  return bytes;
}

}  // namespace

void MovedLists::assign(std::span<const List> lists) {
  lists_.clear();
  for (const List& list : lists) lists_.emplace_back().list = list;
  moves_ = 0;
  settled_ = false;
}

bool MovedLists::are_apart(const Program& program,
                           std::span<const Moved> moved) {
  note(program, moved);
  bool apart = true;
  for (Known& known : lists_) {
    const bool changed = known.from != nullptr || !settled_;
    if (!known.moves || !known.list.stored || !changed) continue;
    apart = take_memory(program, known) && apart;
  }
  if (!settled_) settle(program);
  for (const Known& known : lists_) {
    apart = apart && (!known.moves || is_apart(program, known));
  }
  settled_ = apart;
  return apart;
}

// Records which lists move now, and which did recently.
void MovedLists::note(const Program& program, std::span<const Moved> moved) {
  ++moves_;
  for (Known& known : lists_) known.from = nullptr;
  for (const Moved& each : moved) {
    const auto known = std::find_if(
        lists_.begin(), lists_.end(),
        [&](const Known& k) { return k.list.index == each.index; });
    if (known == lists_.end()) continue;
    const ListView& now = program.lists()[each.index];
    if (std::equal(each.from, each.from + now.count, now.addresses)) continue;
    known->from = each.from;
    known->moved = moves_;
  }
  for (Known& known : lists_) {
    const bool moves = known.moved != 0 && moves_ - known.moved < stays_after;
    if (std::exchange(known.moves, moves) != moves) settled_ = false;
  }
}

void MovedLists::settle(const Program& program) {
  stored_.clear();
  read_.clear();
  for (const Known& known : lists_) {
    if (known.moves) continue;
    add(program.lists()[known.list.index], known.list.element_size,
        known.list.stored ? stored_ : read_);
  }
  stored_.settle();
  read_.settle();
}

// False if its tensors share bytes.
bool MovedLists::take_memory(const Program& program, Known& known) {
  known.memory.clear();
  const std::uintptr_t bytes = add(program.lists()[known.list.index],
                                   known.list.element_size, known.memory);
  known.memory.settle();
  return known.memory.bytes() == bytes;
}

// Compares with everything stored and, if the list is stored, with everything
// read, as far as one of the two has moved.
bool MovedLists::is_apart(const Program& program, const Known& known) {
  others_.clear();
  bool others_moved = false;
  for (Known& other : lists_) {
    if (&other == &known || !other.moves || !other.list.stored) continue;
    others_.push_back(&other.memory);
    others_moved = others_moved || other.from != nullptr;
  }
  const ListView now = program.lists()[known.list.index];
  const bool stored = known.list.stored;
  const std::size_t element_size = known.list.element_size;
  void* const* const from = known.from;
  for (std::size_t e = 0; e < now.count; ++e) {
    const bool moved = from != nullptr && from[e] != now.addresses[e];
    if (!moved && !others_moved) continue;
    const auto [begin, end] = range_of(now, e, element_size);
    if (moved && stored_.touches(begin, end)) return false;
    if (moved && stored && read_.touches(begin, end)) return false;
    for (StoredMemory* const other : others_) {
      if (other->touches(begin, end)) return false;
    }
  }
  return true;
}

}  // namespace fuse
