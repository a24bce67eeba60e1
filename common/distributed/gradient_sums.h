#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include "fusebook/distributed/message_buffer.h"
#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Adds up the gradients of all ranks, each share where it is owned: in the
/// order of the rounds, in each round in that of the ranks, beginning with the
/// first gradient that there is, and rounding after each addition to the
/// gradient's dtype. That is what one process does that computes them in this
/// order.
class GradientSums {
 public:
  /// `params` are whole, and `own` the views of the shares of this rank, in the
  /// order of `shares`.
  GradientSums(Ranks& ranks, const std::vector<Share>& shares,
               std::vector<Tensor> params, std::vector<Tensor> own);

  /// One round, in which this rank may contribute the gradients that the
  /// parameters hold, which are removed. Throws RanksDisagree if gradients of a
  /// parameter have different dtypes.
  void add(bool contributes, const RankCall& call);
  /// The dtype of each parameter's gradient, where some rank had one since the
  /// last `clear`.
  const std::vector<std::optional<DType>>& dtypes() const { return dtypes_; }
  /// Gives the views of the shares their sums as gradients.
  void hand_over();
  /// Forgets the sums.
  void clear();

 private:
  using Codes = std::vector<std::uint8_t>;  // 1 + dtype for each; 0: none

  Codes own_codes(bool contributes) const;
  std::vector<Codes> codes_of_all(const Codes& own);
  void check_codes(const std::vector<Codes>& all, const RankCall& call);
  std::size_t bytes_for(int owner, const Codes& codes) const;
  void add_all(const std::vector<Codes>& all);
  void pack(int owner, const Codes& codes, std::byte* next) const;
  void add_from(const Codes& codes, std::byte* next);

  Ranks& ranks_;
  const std::vector<Share>& shares_;
  std::vector<Tensor> params_;
  std::vector<Tensor> own_;
  std::vector<std::size_t> own_params_;  // of the views, their parameters
  std::vector<Tensor> sums_;             // undefined: none so far
  std::vector<Tensor> spare_;            // of earlier steps
  std::vector<std::optional<DType>> dtypes_;
  MessageBuffer packed_;
  MessageBuffer arrived_;
};

}  // namespace fuse
