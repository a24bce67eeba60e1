#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/state_store.h"

namespace fuse {

/// A group, and the specs of its states: a table that outlives this.
struct GroupToUpdate {
  ParamGroup* group;
  std::span<const StateSpec> specs;
};

/// True if groups with these specs keep the same states.
bool equal_specs(std::span<const StateSpec> a, std::span<const StateSpec> b);
/// The same, but faster in the usual case of one shared table.
inline bool same_specs(std::span<const StateSpec> a,
                       std::span<const StateSpec> b) {
  return (a.data() == b.data() && a.size() == b.size()) || equal_specs(a, b);
}

/// Sets of groups whose tensors may share one list, as indices: sets of eight
/// or more groups that differ only in hyper-parameters; others stay alone.
std::vector<std::vector<std::size_t>> like_groups(
    std::span<const GroupToUpdate> groups);

}  // namespace fuse
