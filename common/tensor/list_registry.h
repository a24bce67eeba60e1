#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "fusebook/tensor/tensor_list.h"

namespace fuse {

std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word);
std::uint64_t mix_hash(std::uint64_t hash, const Shape& shape);

/// What the address of tensor `i` counts in a list's hash; odd, so that no bit of
/// it is lost.
inline std::uint64_t place_factor(std::size_t i) {
  const std::uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15ULL;
  return ((hash ^ (hash >> 32)) * 0xbf58476d1ce4e5b9ULL) | 1;
}

/// One tensor's part of a list's content hash; the parts are added. A tensor that
/// moves adds the distance times its factor.
inline std::uint64_t place_hash(std::size_t i, const void* address,
                                std::int64_t numel) {
  return (reinterpret_cast<std::uintptr_t>(address) +
          mix_hash(0, std::uint64_t(numel))) *
         place_factor(i);
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
  std::uint64_t last_id_ = std::uint64_t(Rate::element) + 1;  // of empty lists
};

ListRegistry& list_registry();

}  // namespace fuse
