#include "fusebook/tensor/list_registry.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace fuse {
namespace {

bool same_layout(const Layout& a, const Layout& b) {
  return std::equal(a.sizes, a.sizes + a.rank, b.sizes, b.sizes + b.rank) &&
         std::equal(a.strides, a.strides + a.rank, b.strides,
                    b.strides + b.rank);
}

bool same_memory(const ListImpl& a, const ListImpl& b) {
  if (a.dtype == DType::position) return false;  // in none
  return a.dtype == b.dtype && a.rate == b.rate && a.device == b.device &&
         a.addresses == b.addresses && a.numels == b.numels &&
         std::equal(a.layouts.begin(), a.layouts.end(), b.layouts.begin(),
                    b.layouts.end(), same_layout);
}

// Every optimizer has empty lists for what it lacks. All of these have one
// identity, and none of them is looked for: thousands of optimizers would make
// thousands of entries with one hash.
bool is_empty(const ListImpl& list) {
  return list.count == 0 && list.dtype == ListImpl().dtype;
}

std::uint64_t id_of_empty(Rate rate) { return 1 + std::uint64_t(rate); }

}  // namespace

std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

std::uint64_t mix_hash(std::uint64_t hash, const Shape& shape) {
  hash = mix_hash(hash, shape.size());
  for (const std::int64_t size : shape) {
    hash = mix_hash(hash, std::uint64_t(size));
  }
  return hash;
}

std::uint64_t content_of(const ListImpl& list) {
  std::uint64_t hash =
      mix_hash(std::uint64_t(list.dtype), std::uint64_t(list.rate));
  for (const Layout& layout : list.layouts) {
    for (std::size_t d = 0; d < layout.rank; ++d) {
      hash = mix_hash(hash, std::uint64_t(layout.strides[d]));
    }
  }
  for (std::size_t i = 0; i < list.count; ++i) {
    hash += place_hash(i, list.addresses[i], list.numels[i]);
  }
  return hash;
}

void ListRegistry::add(ListImpl& list) {
  if (is_empty(list)) {
    list.id = id_of_empty(list.rate);
    return;
  }
  const std::scoped_lock lock(mutex_);
  identify(list);
  lists_.emplace(list.content_hash, &list);
}

// Reuses the node, so nothing is allocated.
void ListRegistry::move(ListImpl& list, std::uint64_t old_content) {
  if (is_empty(list)) return;
  const std::scoped_lock lock(mutex_);
  auto node = lists_.extract(find(list, old_content));
  identify(list);
  node.key() = list.content_hash;
  lists_.insert(std::move(node));
}

void ListRegistry::remove(const ListImpl& list) {
  if (is_empty(list)) return;
  const std::scoped_lock lock(mutex_);
  lists_.erase(find(list, list.content_hash));
}

void ListRegistry::follow(const std::unordered_set<const TensorImpl*>& moved) {
  // They are lists themselves: to be destroyed when the lock is released.
  std::vector<std::shared_ptr<ListImpl>> outdated;
  const std::scoped_lock lock(mutex_);
  std::vector<ListImpl*> found;
  for (const auto& [content, list] : lists_) {
    const bool holds =
        list->owners == nullptr &&
        std::ranges::any_of(list->tensors, [&](const auto& each) {
          return moved.contains(each.impl().get());
        });
    if (holds) found.push_back(list);
  }
  for (ListImpl* const list : found) {
    auto node = lists_.extract(find(*list, list->content_hash));
    std::ranges::move(list->broadcasts, std::back_inserter(outdated));
    list->broadcasts.clear();
    list->collect();
    identify(*list);
    node.key() = list->content_hash;
    lists_.insert(std::move(node));
  }
}

void ListRegistry::identify(ListImpl& list) {
  // Not equal_range: it would go through all twins, and the first one will do.
  for (auto twin = lists_.find(list.content_hash);
       twin != lists_.end() && twin->first == list.content_hash; ++twin) {
    if (!same_memory(*twin->second, list)) continue;
    list.id = twin->second->id;
    return;
  }
  list.id = ++last_id_;
}

ListRegistry::Lists::iterator ListRegistry::find(const ListImpl& list,
                                                 std::uint64_t content) {
  auto found = lists_.find(content);
  while (found->second != &list) ++found;
  return found;
}

ListRegistry& list_registry() {
  static auto* const instance = new ListRegistry;  // outlives static lists
  return *instance;
}

}  // namespace fuse
