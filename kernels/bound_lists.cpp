#include "bound_lists.h"

#include <algorithm>

namespace fuse {
namespace {

void append(std::vector<std::int64_t>& words, const Layout& layout) {
  words.push_back(std::int64_t(layout.rank));
  words.insert(words.end(), layout.sizes, layout.sizes + layout.rank);
  words.insert(words.end(), layout.strides, layout.strides + layout.rank);
}

bool same_layouts(const std::vector<std::int64_t>& words,
                  const ListView& list) {
  if (list.layouts == nullptr) return words.empty();
  std::vector<std::int64_t> now;
  now.reserve(words.size());
  for (std::size_t e = 0; e < list.count; ++e) append(now, list.layouts[e]);
  return now == words;
}

}  // namespace

bool BoundLists::match(const Bound& bound, const ListView& list) {
  if (bound.id == list.id) return true;
  return std::equal(bound.addresses.begin(), bound.addresses.end(),
                    list.addresses, list.addresses + list.count) &&
         std::equal(bound.numels.begin(), bound.numels.end(), list.numels,
                    list.numels + list.count) &&
         same_layouts(bound.layouts, list);
}

bool BoundLists::match(std::span<const ListView> lists) const {
  return std::equal(bound_.begin(), bound_.end(), lists.begin(), lists.end(),
                    [](const Bound& bound, const ListView& list) {
                      return match(bound, list);
                    });
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

}  // namespace fuse
