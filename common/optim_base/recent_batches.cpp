#include "fusebook/optim_base/recent_batches.h"

#include <algorithm>
#include <utility>

namespace fuse {

RecentBatches::Change RecentBatches::refresh(
    std::span<const GroupToUpdate> groups, const StateStore& store,
    const GradientSource& gradients, const Try& try_update) {
  Change change = Change::params;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    GroupBatches& each = kept_[i];
    if (i > 0 && !each.is_of(gradients)) continue;
    change = each.refresh(groups, store, gradients, try_update);
    if (change == Change::nothing) {
      const auto begin = kept_.begin();
      std::rotate(begin, begin + std::ptrdiff_t(i),
                  begin + std::ptrdiff_t(i) + 1);
      return change;
    }
    if (change == Change::params) break;
  }
  // Do not keep removed parameters alive.
  if (change == Change::params) kept_.clear();
  return kept_.empty() ? Change::params : Change::batches;
}

void RecentBatches::rebuild(std::span<const GroupToUpdate> groups,
                            StateStore& store, const GradientSource& gradients,
                            const Try& try_update) {
  GroupBatches made;
  made.rebuild(groups, store, gradients, try_update);
  if (kept_.size() == most_kept) kept_.pop_back();
  kept_.insert(kept_.begin(), std::move(made));
}

std::vector<std::vector<Tensor>> RecentBatches::params_by_list(
    std::span<const GroupToUpdate> groups) const {
  return kept_.empty() ? GroupBatches().params_by_list(groups)
                       : kept_.front().params_by_list(groups);
}

std::vector<std::vector<Tensor>> RecentBatches::lists_to_come(
    std::span<const GroupToUpdate> groups) const {
  const auto found = std::find_if(
      kept_.begin(), kept_.end(),
      [&](const GroupBatches& each) { return each.serves(groups); });
  if (found == kept_.end()) return GroupBatches::new_lists(groups);
  if (found == kept_.begin()) return {};
  return found->params_by_list(groups);
}

std::size_t RecentBatches::group_count() const {
  return kept_.empty() ? 0 : kept_.front().group_count();
}

std::size_t RecentBatches::updated(std::size_t group) const {
  return kept_.front().updated(group);
}

std::span<JoinedBatch> RecentBatches::batches() {
  if (kept_.empty()) return {};
  return kept_.front().batches();
}

}  // namespace fuse
