#include "fusebook/runtime/bound_lists.h"

#include <algorithm>

namespace fuse {
namespace {

void append(std::vector<std::int64_t>& words, const Layout& layout) {
  words.push_back(std::int64_t(layout.rank));
  words.insert(words.end(), layout.sizes, layout.sizes + layout.rank);
  words.insert(words.end(), layout.strides, layout.strides + layout.rank);
}

// True if the words at `next` are these; then advances `next` past them.
bool take(std::span<const std::int64_t>& next, const std::int64_t* words,
          std::size_t count) {
  if (next.size() < count) return false;
  if (!std::equal(words, words + count, next.begin())) return false;
  next = next.subspan(count);
  return true;
}

bool take(std::span<const std::int64_t>& next, const Layout& layout) {
  const auto rank = std::int64_t(layout.rank);
  return take(next, &rank, 1) && take(next, layout.sizes, layout.rank) &&
         take(next, layout.strides, layout.rank);
}

bool same_layouts(std::span<const std::int64_t> words, const ListView& list) {
  if (list.layouts == nullptr) return words.empty();
  for (std::size_t e = 0; e < list.count; ++e) {
    if (!take(words, list.layouts[e])) return false;
  }
  return words.empty();
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

std::uint64_t content_of(const ListView& list) {
  if (list.content != 0) return list.content;
  std::uint64_t hash = list.count;
  for (std::size_t e = 0; e < list.count; ++e) {
    hash = mix(hash, reinterpret_cast<std::uintptr_t>(list.addresses[e]));
    hash = mix(hash, std::uint64_t(list.numels[e]));
  }
  return hash;
}

}  // namespace

Change BoundLists::compare(const Bound& bound, const ListView& list) {
  if (bound.id == list.id) return Change::none;
  const bool alike = std::equal(bound.numels.begin(), bound.numels.end(),
                                list.numels, list.numels + list.count) &&
                     same_layouts(bound.layouts, list);
  if (!alike) return Change::other;
  const bool there = std::equal(bound.addresses.begin(), bound.addresses.end(),
                                list.addresses, list.addresses + list.count);
  return there ? Change::none : Change::moved;
}

Change BoundLists::compare(std::span<const ListView> lists) const {
  if (bound_.size() != lists.size()) return Change::other;
  Change change = Change::none;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    change = std::max(change, compare(bound_[i], lists[i]));
    if (change == Change::other) break;
  }
  return change;
}

void BoundLists::assign(std::span<const ListView> lists) {
  bound_.resize(lists.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const ListView& list = lists[i];
    Bound& bound = bound_[i];
    bound.id = list.id;
    bound.addresses.assign(list.addresses, list.addresses + list.count);
    bound.numels.assign(list.numels, list.numels + list.count);
    bound.layouts.clear();
    if (list.layouts == nullptr) continue;
    for (std::size_t e = 0; e < list.count; ++e) {
      append(bound.layouts, list.layouts[e]);
    }
  }
}

void BoundLists::rename(std::span<const ListView> lists) {
  for (std::size_t i = 0; i < bound_.size(); ++i) bound_[i].id = lists[i].id;
}

void BoundLists::move(std::span<const ListView> lists) {
  for (std::size_t i = 0; i < bound_.size(); ++i) {
    if (bound_[i].id == lists[i].id) continue;
    std::copy_n(lists[i].addresses, lists[i].count,
                bound_[i].addresses.begin());
    bound_[i].id = lists[i].id;
  }
}

std::uint64_t content_of(std::span<const ListView> lists) {
  std::uint64_t hash = lists.size();
  for (const ListView& list : lists) hash = mix(hash, content_of(list));
  return hash;
}

}  // namespace fuse
