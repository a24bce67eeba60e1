#include "fusebook/ir/stored_memory.h"

#include <algorithm>
#include <cstdint>

#include "fusebook/support/sort_runs.h"

namespace fuse {

void StoredMemory::clear() {
  added_.clear();
  begins_.clear();
  ends_.clear();
  last_ = 0;
  gap_ = {};
}

void StoredMemory::add(std::uintptr_t begin, std::uintptr_t end) {
  if (begin < end) added_.push_back({begin, end});
}

void StoredMemory::settle() {
  const auto before = [](const Range& a, const Range& b) {
    return a.begin < b.begin;
  };
  sort_runs(added_, before);
  for (const Range& range : added_) {
    if (!ends_.empty() && range.begin <= ends_.back()) {
      ends_.back() = std::max(ends_.back(), range.end);
      continue;
    }
    begins_.push_back(range.begin);
    ends_.push_back(range.end);
  }
  added_.clear();
  gap_ = {};
}

// The steps do not depend on the address, so the processor can start the next
// search meanwhile.
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

void StoredMemory::find(std::uintptr_t address) {
  const bool next = last_ < ends_.size() && fits(last_ + 1, address);
  last_ = next ? last_ + 1 : search(address);
  gap_.begin = last_ == 0 ? 0 : ends_[last_ - 1];
  gap_.end = last_ == begins_.size() ? UINTPTR_MAX : begins_[last_];
}

std::uintptr_t StoredMemory::bytes() const {
  std::uintptr_t sum = 0;
  for (std::size_t i = 0; i < begins_.size(); ++i) sum += ends_[i] - begins_[i];
  return sum;
}

}  // namespace fuse
