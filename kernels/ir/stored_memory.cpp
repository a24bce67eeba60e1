#include "fusebook/ir/stored_memory.h"

#include <algorithm>

namespace fuse {

void StoredMemory::clear() {
  added_.clear();
  begins_.clear();
  ends_.clear();
  last_ = 0;
}

void StoredMemory::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin < end) added_.push_back({begin, end});
}

void StoredMemory::settle() {
  std::sort(added_.begin(), added_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (const Range& range : added_) {
    if (!ends_.empty() && range.begin <= ends_.back()) {
      ends_.back() = std::max(ends_.back(), range.end);
      continue;
    }
    begins_.push_back(range.begin);
    ends_.push_back(range.end);
  }
  added_.clear();
}

// Is `place` that of the first range that ends behind an address?
bool StoredMemory::fits(std::size_t place, std::uintptr_t address) const {
  return (place == 0 || ends_[place - 1] <= address) &&
         (place == ends_.size() || ends_[place] > address);
}

// Its steps are the same whatever the address, so that the processor looks for
// the next one meanwhile.
std::size_t StoredMemory::search(std::uintptr_t address) const {
  const std::uintptr_t* first = ends_.data();
  std::size_t count = ends_.size();
  while (count > 1) {
    const std::size_t half = count / 2;
    first += first[half - 1] <= address ? half : 0;
    count -= half;
  }
  const bool behind = count == 1 && *first <= address;
  return std::size_t(first - ends_.data()) + (behind ? 1 : 0);
}

bool StoredMemory::touches(std::uintptr_t begin, std::uintptr_t end) {
  if (begin >= end) return false;
  if (!fits(last_, begin)) {
    const bool next = last_ < ends_.size() && fits(last_ + 1, begin);
    last_ = next ? last_ + 1 : search(begin);
  }
  return last_ < begins_.size() && begins_[last_] < end;
}

}  // namespace fuse
