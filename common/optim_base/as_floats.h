// What an update takes as floats, whatever it is kept in.
#pragma once

#include <algorithm>
#include <source_location>
#include <utility>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/batch.h"

namespace fuse {

/// Masters that are split are joined while they are updated, and not there at the
/// end. Where parameters are rounded stochastically, these are the masters until
/// then.
class JoinedMasters {
 public:
  explicit JoinedMasters(Batch& batch) : batch_(batch) {
    if (!batch.rounding_keys.empty()) {
      batch.masters = foreach_to(batch.params, DType::float32);
    } else if (!batch.low_halves.empty()) {
      batch.masters = foreach_join_halves(batch.params, batch.low_halves);
    }
  }
  JoinedMasters(const JoinedMasters&) = delete;
  JoinedMasters& operator=(const JoinedMasters&) = delete;
  ~JoinedMasters() {
    if (!stays()) batch_.masters = TensorList();
  }

  /// Where a step may be skipped: what is joined is in no memory, so nothing else
  /// looks.
  void split_into(const TensorList& params) const {
    if (!batch_.rounding_keys.empty()) {
      return foreach_copy_(params, rounded_stochastically());
    }
    if (batch_.low_halves.empty()) return;
    foreach_copy_(params, foreach_high_half(batch_.masters));
    foreach_copy_(batch_.low_halves, foreach_low_half(batch_.masters));
  }

  /// Whole masters that stay have the bits that are there: it needs no look.
  void round_into(const TensorList& params) const {
    if (batch_.masters.empty() || !stays()) return;
    foreach_copy_(params, batch_.masters);
  }

 private:
  bool stays() const {
    return batch_.low_halves.empty() && batch_.rounding_keys.empty();
  }

  // The update has counted the step, so that each has bits of its own.
  TensorList rounded_stochastically() const {
    const Operand positions(batch_.positions);
    const Operand keys(batch_.rounding_keys);
    const Operand steps(batch_.steps);
    const Operand* const operands[] = {&positions, &keys, &steps};
    const TensorList drawn =
        foreach_apply(OpCode::draw, operands, std::source_location::current());
    return foreach_stochastic_half(batch_.masters, drawn);
  }

  Batch& batch_;
};

/// States in blocks are floats while they are updated, and restored as they were
/// at the end.
class DecodedStates {
 public:
  explicit DecodedStates(std::vector<TensorList>& states) : states_(states) {
    if (std::none_of(states.begin(), states.end(), lies_in_blocks)) return;
    own_ = states;
    for (TensorList& list : states_) {
      if (lies_in_blocks(list)) list = foreach_to(list, DType::float32);
    }
  }
  DecodedStates(const DecodedStates&) = delete;
  DecodedStates& operator=(const DecodedStates&) = delete;
  ~DecodedStates() {
    if (!own_.empty()) states_ = std::move(own_);
  }

  void encode() const {
    for (std::size_t s = 0; s < own_.size(); ++s) {
      if (lies_in_blocks(own_[s])) foreach_copy_(own_[s], states_[s]);
    }
  }

 private:
  static bool lies_in_blocks(const TensorList& list) {
    return in_blocks(list.impl()->dtype);
  }

  std::vector<TensorList>& states_;
  std::vector<TensorList> own_;
};

}  // namespace fuse
