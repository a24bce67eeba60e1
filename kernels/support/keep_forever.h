#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fuse {

/// Keeps an object until the process is gone, past the end of static objects, since
/// other threads may still use it then. Returns it.
template <class T>
T* keep_forever(std::unique_ptr<T> object) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<T>>;
  const std::scoped_lock lock(mutex);
  return kept->emplace_back(std::move(object)).get();
}

}  // namespace fuse
