#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/distributed/message_buffer.h"
#include "fusebook/distributed/open_sums.h"
#include "fusebook/distributed/ranks.h"
#include "fusebook/distributed/shares.h"
#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Adds up the gradients of all ranks, each share where it is owned: in the
/// order of the rounds, in each round in that of the ranks, beginning with the
/// first gradient that there is, and rounding after each addition to the
/// gradient's dtype. That is what one process does that computes them in this
/// order. What has arrived last stays where it is, so that the step itself may add
/// it.
class GradientSums {
 public:
  /// More gradients than this are not added by a step itself.
  static constexpr std::size_t most_open = 6;

  /// `params` are whole, and `own` the views of the shares of this rank, in the
  /// order of `shares`.
  GradientSums(Ranks& ranks, const std::vector<Share>& shares,
               std::vector<Tensor> params, std::vector<Tensor> own,
               const CompileOptions& options);

  /// One round, in which this rank may contribute the gradients that the
  /// parameters hold, which are removed. Throws RanksDisagree if gradients of a
  /// parameter have different dtypes.
  void add(bool contributes, const RankCall& call);
  /// Rounds gradients of wider dtypes to this one before they are sent or added,
  /// those of this rank as well; nothing sends them as they are.
  void send_as(std::optional<DType> dtype) { sent_as_ = dtype; }
  /// What the launches that add gradients have done.
  const Counters& counters() const { return add_.counters(); }
  /// The dtype of each parameter's gradient, where some rank had one since the
  /// last `clear`.
  const std::vector<std::optional<DType>>& dtypes() const { return dtypes_; }
  /// The sums of the views, as far as they are still to be made; whoever makes
  /// them, clears it.
  OpenSums& open() { return open_; }
  /// Gives the views of the shares their sums as gradients, which may be open.
  void hand_over();
  /// Forgets the sums.
  void clear();

 private:
  using Codes = std::vector<std::uint8_t>;  // 1 + dtype for each; 0: none
  using Parts = std::vector<Tensor>;        // of each view

  Codes own_codes(bool contributes) const;
  std::vector<Codes> codes_of_all(const Codes& own);
  void check_codes(const std::vector<Codes>& all, const RankCall& call);
  void exchange(const std::vector<Codes>& all);
  DType sent_dtype(std::uint8_t code) const;
  Parts parts_for(int owner, const Codes& codes) const;
  Parts room_for(std::size_t rank, const Codes& codes);
  Parts of_views(std::size_t rank, const Codes& codes) const;
  Parts own_parts(const Codes& codes);
  Tensor& room_like(Tensor& room, std::size_t view, DType dtype) const;
  Tensor& spare(std::size_t view);
  bool are_alike() const;
  void add_arrived(std::size_t left);
  void add_one(const Parts& parts);
  void add_together(std::vector<Parts> parts);

  Ranks& ranks_;
  const std::vector<Share>& shares_;
  std::vector<Tensor> params_;
  std::vector<Tensor> own_;
  std::vector<std::size_t> own_params_;  // of the views, their parameters
  Parts sums_;                           // undefined: none so far
  Parts spare_;                          // of earlier steps
  std::vector<Parts> arrived_;           // not added so far, in their order
  OpenSums open_;
  std::vector<std::optional<DType>> dtypes_;
  std::optional<DType> sent_as_;
  std::vector<Parts> room_;           // for what arrives, of each rank
  std::vector<MessageBuffer> sent_;   // copies for each rank
  std::vector<MessageBuffer> taken_;  // the same of what arrives
  std::vector<OpenList> lists_;       // what `add_` adds
  Compiled<std::function<void()>> add_;
};

}  // namespace fuse
