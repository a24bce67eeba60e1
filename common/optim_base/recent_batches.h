#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/optim_base/group_batches.h"

namespace fuse {

/// The batches of the last few sets of gradients: parameters that take part
/// only in some steps find their previous lists again.
class RecentBatches {
 public:
  /// Number of sets kept, including the one in use.
  static constexpr std::size_t most_kept = 4;
  using Change = GroupBatches::Change;
  using Try = GroupBatches::Try;

  /// As GroupBatches::refresh; `nothing` also if batches of an earlier step
  /// fit.
  Change refresh(std::span<const GroupToUpdate> groups, const StateStore& store,
                 const GradientSource& gradients, const Try& try_update);
  void rebuild(std::span<const GroupToUpdate> groups, StateStore& store,
               const GradientSource& gradients, const Try& try_update);
  std::vector<std::vector<Tensor>> params_by_list(
      std::span<const GroupToUpdate> groups) const;
  /// The parameters of the lists of the next step; none if these are the lists
  /// of the last one.
  std::vector<std::vector<Tensor>> lists_to_come(
      std::span<const GroupToUpdate> groups) const;
  std::size_t group_count() const;
  std::size_t updated(std::size_t group) const;
  std::span<JoinedBatch> batches();

 private:
  std::vector<GroupBatches> kept_;  // the one in use comes first
};

}  // namespace fuse
