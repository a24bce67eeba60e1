#pragma once

#include <array>
#include <cstddef>

#include "fusebook/trace/scalar.h"

namespace fuse {

/// What `for_each_scalar` of an optimizer's options is called with: takes a number
/// or an array of them under a name, and calls visit(name, index, number), where
/// `index` is -1 for a single number.
template <class Visit>
class ScalarVisitor {
 public:
  explicit ScalarVisitor(Visit& visit) : visit_(visit) {}

  void operator()(const char* name, Scalar& number) const {
    visit_(name, -1, number);
  }
  template <std::size_t n>
  void operator()(const char* name, std::array<Scalar, n>& numbers) const {
    for (std::size_t i = 0; i < n; ++i) visit_(name, int(i), numbers[i]);
  }

 private:
  Visit& visit_;
};

/// Calls visit(name, index, number) for each number among an optimizer's options.
template <class Options, class Visit>
void each_scalar(Options& options, Visit visit) {
  options.for_each_scalar(ScalarVisitor<Visit>(visit));
}

}  // namespace fuse
