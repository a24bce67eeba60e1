#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "fusebook/tensor/tensor_list.h"

namespace fuse {

std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word);
std::uint64_t mix_hash(std::uint64_t hash, const Shape& shape);

/// One tensor's part of a list's content hash; the parts are added, so the sum
/// need not be recomputed when some of them move.
inline std::uint64_t place_hash(std::size_t i, const void* address,
                                std::int64_t numel) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(address) +
                       (i + 1) * 0x9e3779b97f4a7c15ULL;
  hash = (hash ^ (hash >> 32) ^ std::uint64_t(numel)) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 29);
}

/// A hash of addresses, sizes, strides, dtype and rate.
std::uint64_t content_of(const ListImpl& list);

/// Lists over the same memory share an identity, however they were made: a
/// recording then knows that they are the same. Thread-safe.
class ListRegistry {
 public:
  /// Gives a list its identity.
  void add(ListImpl& list);
  /// Updates its identity after its content hash has changed.
  void move(ListImpl& list, std::uint64_t old_content);
  void remove(const ListImpl& list);
  /// Collects the memory of lists anew that hold one of these tensors.
  void follow(const std::unordered_set<const TensorImpl*>& moved);

 private:
  using Lists = std::unordered_multimap<std::uint64_t, ListImpl*>;

  void identify(ListImpl& list);
  Lists::iterator find(const ListImpl& list, std::uint64_t content);

  std::mutex mutex_;
  Lists lists_;
  std::uint64_t last_id_ = 0;
};

ListRegistry& list_registry();

}  // namespace fuse
