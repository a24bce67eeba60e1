// What an update takes as floats, whatever it is kept in.
#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/batch.h"

namespace fuse {

/// Whether the parameters of a batch are widened by `opmath` alone: those in 16 bits
/// that neither have masters nor are rounded stochastically.
inline bool widens(const Batch& batch, bool opmath) {
  return opmath && is_half(batch.params.impl()->dtype) &&
         batch.masters.empty() && batch.low_halves.empty() &&
         batch.rounding_keys.empty();
}

/// Masters that are split are joined while they are updated, and not there at the
/// end. Where parameters are rounded stochastically, or widened, these are the masters
/// until then.
class JoinedMasters {
 public:
  JoinedMasters(Batch& batch, bool widened) : batch_(batch), widened_(widened) {
    if (!batch.rounding_keys.empty() || widened) {
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
    if (widened_) return foreach_copy_(params, batch_.masters);
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
    return batch_.low_halves.empty() && batch_.rounding_keys.empty() &&
           !widened_;
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
  bool widened_;
};

/// States in blocks, and those of widened parameters in 16 bits, are floats while they
/// are updated, and restored as they were at the end. Averages of rows and columns stay
/// as they are: who keeps lists of them from step to step widens them.
class DecodedStates {
 public:
  DecodedStates(std::vector<TensorList>& states,
                std::span<const StateSpec> specs, bool widened)
      : states_(states), specs_(specs), widened_(widened) {
    for (std::size_t s = 0; s < states.size(); ++s) {
      if (!is_coded(s, states[s])) continue;
      if (own_.empty()) own_ = states;
      states_[s] = foreach_to(own_[s], DType::float32);
    }
  }
  DecodedStates(const DecodedStates&) = delete;
  DecodedStates& operator=(const DecodedStates&) = delete;
  ~DecodedStates() {
    if (!own_.empty()) states_ = std::move(own_);
  }

  void encode() const {
    for (std::size_t s = 0; s < own_.size(); ++s) {
      if (is_coded(s, own_[s])) foreach_copy_(own_[s], states_[s]);
    }
  }

 private:
  bool is_coded(std::size_t s, const TensorList& own) const {
    const DType dtype = own.impl()->dtype;
    return in_blocks(dtype) ||
           (widened_ && is_half(dtype) && !is_average(specs_[s]));
  }

  std::vector<TensorList>& states_;
  std::span<const StateSpec> specs_;
  bool widened_;
  std::vector<TensorList> own_;
};

}  // namespace fuse
