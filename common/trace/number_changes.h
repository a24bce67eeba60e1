#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fuse {

/// Which of many numbers have changed since the last check: the numbers report
/// it themselves, so that unchanged ones need not be visited.
class NumberChanges {
 public:
  /// Identifies one number of a group.
  struct Which {
    std::uint32_t group = 0;
    std::uint32_t number = 0;
    bool operator==(const Which&) const = default;
  };

  /// Counts individual changes up to this limit.
  explicit NumberChanges(std::size_t count) : count_(count) {
    changed_.reserve(count);
  }

  void note(const Which& number) {
    if (changed_.size() < count_) {
      changed_.push_back(number);
    } else {
      all_ = true;
    }
  }
  /// True if there were more than that: any number may have changed.
  bool all() const { return all_; }
  /// The numbers that changed, possibly with repeats.
  std::span<const Which> numbers() const { return changed_; }
  void clear() {
    changed_.clear();
    all_ = false;
  }

 private:
  std::size_t count_;
  std::vector<Which> changed_;
  bool all_ = false;
};

/// The part of a number that reports its changes. It belongs to the number's
/// location: a copy elsewhere reports nothing, while assigning to the number or
/// destroying it counts as a change.
class ChangeTeller {
 public:
  ChangeTeller() = default;
  ChangeTeller(const ChangeTeller& /*other*/) {}
  ChangeTeller& operator=(const ChangeTeller& /*other*/) {  // NOLINT
    tell();
    return *this;
  }
  ~ChangeTeller() { tell(); }

  void tell() const {
    if (changes_ != nullptr) changes_->note(number_);
  }
  /// From now on reports to `changes`, as that number; the previous receiver is
  /// told of a change, because it will learn of no later ones.
  void tell_to(const std::shared_ptr<NumberChanges>& changes,
               const NumberChanges::Which& number) {
    if (changes_ == changes && number_ == number) return;
    tell();
    changes_ = changes;
    number_ = number;
  }

 private:
  std::shared_ptr<NumberChanges> changes_;
  NumberChanges::Which number_;
};

}  // namespace fuse
