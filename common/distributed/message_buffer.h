#pragma once

#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

namespace fuse {

/// Memory for messages that is kept from step to step: new memory of many megabytes
/// costs more than to fill it.
class MessageBuffer {
 public:
  /// Room for as many parts of these sizes, one behind the other. What was there is
  /// gone.
  std::vector<std::span<std::byte>> parts(
      const std::vector<std::size_t>& sizes) {
    const auto all =
        std::accumulate(sizes.begin(), sizes.end(), std::size_t(0));
    if (all > size_) {
      bytes_.reset();
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(all);
      size_ = all;
    }
    std::vector<std::span<std::byte>> found;
    std::byte* next = bytes_.get();
    for (const std::size_t size : sizes) {
      found.emplace_back(next, size);
      next += size;
    }
    return found;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace fuse
