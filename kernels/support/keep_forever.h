#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fuse {

/// Keeps an object for the rest of the process, exit included: what other threads
/// may still call then. Returns it.
template <class T>
T* keep_forever(std::unique_ptr<T> object) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<T>>;
  const std::scoped_lock lock(mutex);
  return kept->emplace_back(std::move(object)).get();
}

}  // namespace fuse
