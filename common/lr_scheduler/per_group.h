#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"

namespace fuse {

/// An option with one value for all parameter groups, or one for each: `.max_lr
/// = 0.1` or `.max_lr = {0.1, 0.02}`.
template <class T>
class PerGroup {
 public:
  PerGroup() = default;
  /// One value for all groups.
  template <std::convertible_to<T> U>
  PerGroup(U value)  // NOLINT(google-explicit-constructor)
      : values_{T(std::move(value))} {}
  PerGroup(std::initializer_list<T> values) : values_(values), list_(true) {}
  PerGroup(std::vector<T> values)  // NOLINT(google-explicit-constructor)
      : values_(std::move(values)), list_(true) {}

  /// False if nothing was given.
  bool given() const { return list_ || !values_.empty(); }
  /// True if each group has its own value.
  bool is_list() const { return list_; }
  /// Number of values given.
  std::size_t size() const { return values_.size(); }
  /// Throws Error if the group has no value.
  const T& operator[](std::size_t group) const {
    const std::size_t place = list_ ? group : 0;
    if (place < values_.size()) return values_[place];
    throw Error("PerGroup::operator[]: no value for parameter group " +
                number_text(group));
  }

  /// Throws Error unless a value was given, and a list has one value for each
  /// group.
  void check(const std::string& scheduler, const std::string& name,
             std::size_t groups) const {
    if (!given()) throw Error(scheduler + " needs " + name);
    if (list_ && size() != groups) {
      throw Error(scheduler + ": " + name +
                  " must have the same length as optimizer.param_groups. " +
                  name + " has " + number_text(size()) +
                  " values, param_groups has " + number_text(groups) + ".");
    }
  }

 private:
  std::vector<T> values_;
  bool list_ = false;
};

}  // namespace fuse
