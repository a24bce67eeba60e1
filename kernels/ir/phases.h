#pragma once

#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// The phases of a program: what is reduced in one is known in the next.
class Phases {
 public:
  explicit Phases(const Program& program);

  /// The phase in which a value can be computed first.
  int of(ValueId value) const { return phase_of_[std::size_t(value)]; }
  /// The phase that reduces, for a reduction.
  int of_reduction(ValueId reduction) const { return of(reduction) - 1; }
  /// The last phase, which stores.
  int last() const { return last_; }
  /// The reductions that stores depend on, in the order of their recording.
  const std::vector<ValueId>& reductions() const { return reductions_; }

 private:
  std::vector<int> phase_of_;
  int last_ = 0;
  std::vector<ValueId> reductions_;
};

/// For each slot of a program, whether something else than a reduction needs what
/// is in it. What is in the others is reduced by the operation that reads it,
/// before anything is stored.
std::vector<bool> slots_read_last(const Program& program);

}  // namespace fuse
