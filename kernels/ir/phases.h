#pragma once

#include <cstdint>
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
  /// Slots of numbers that the last phase may overwrite and that others of its
  /// tensors read: it has them from the first phase, like results of reductions.
  const std::vector<std::int32_t>& kept() const { return kept_; }
  /// Which of them a slot is; -1 for any other.
  std::int32_t place_in_kept(std::int32_t slot) const {
    return kept_.empty() ? -1 : kept_places_[std::size_t(slot)];
  }

 private:
  void find_kept(const Program& program, const std::vector<bool>& needed);

  std::vector<int> phase_of_;
  int last_ = 0;
  std::vector<ValueId> reductions_;
  std::vector<std::int32_t> kept_;
  std::vector<std::int32_t> kept_places_;
};

/// True if a program with phases keeps the number in one slot because it stores
/// numbers in the other one, whether or not they share memory.
bool is_kept_from(const Program& program, std::int32_t number,
                  std::int32_t stored);

/// For each slot of a program, whether something else than a reduction needs what
/// is in it. What is in the others is reduced by the operation that reads it,
/// before anything is stored.
std::vector<bool> slots_read_last(const Program& program);

}  // namespace fuse
