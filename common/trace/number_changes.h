#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fuse {

/// Which of many numbers have been changed since somebody looked: the numbers
/// tell it themselves, so that those that stay need not be visited.
class NumberChanges {
 public:
  /// One of the numbers of a group.
  struct Which {
    std::uint32_t group = 0;
    std::uint32_t number = 0;
    bool operator==(const Which&) const = default;
  };

  /// Counts them one by one up to this.
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
  /// There were more than that: it may be any number.
  bool all() const { return all_; }
  /// Those that have changed, perhaps several times.
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

/// The part of a number that tells of its changes. It belongs to the place where
/// the number stands: a copy elsewhere tells nobody, and what is assigned to the
/// number, or that it is gone, is a change of it.
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
  /// From now on it tells these, as that number; who was told before does not
  /// know any more how it goes on.
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
