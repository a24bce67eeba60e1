#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/optim_base/group_batches.h"

namespace fuse {

/// The batches of the last few sets of gradients: parameters that take part in
/// some steps only find the lists that they had before.
class RecentBatches {
 public:
  /// Sets that are kept, the one in use included.
  static constexpr std::size_t most_kept = 4;
  using Change = GroupBatches::Change;
  using Try = GroupBatches::Try;

  /// As GroupBatches does: nothing also where batches of an earlier step fit.
  Change refresh(std::span<const GroupToUpdate> groups, const StateStore& store,
                 const GradientSource& gradients, const Try& try_update);
  void rebuild(std::span<const GroupToUpdate> groups, StateStore& store,
               const GradientSource& gradients, const Try& try_update);
  std::vector<std::vector<Tensor>> params_by_list(
      std::span<const GroupToUpdate> groups) const;
  std::size_t group_count() const;
  std::size_t updated(std::size_t group) const;
  std::span<JoinedBatch> batches();

 private:
  std::vector<GroupBatches> kept_;  // the one in use comes first
};

}  // namespace fuse
