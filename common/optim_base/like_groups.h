#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/state_store.h"

namespace fuse {

/// A group, and what is kept for each of its parameters: a table that lives on.
struct GroupToUpdate {
  ParamGroup* group;
  std::span<const StateSpec> specs;
};

/// True when groups with these tables keep the same states.
bool equal_specs(std::span<const StateSpec> a, std::span<const StateSpec> b);
/// The same; usually it is one table.
inline bool same_specs(std::span<const StateSpec> a,
                       std::span<const StateSpec> b) {
  return (a.data() == b.data() && a.size() == b.size()) || equal_specs(a, b);
}

/// Sets of groups whose tensors may go into one list, by their numbers: eight
/// groups or more that differ in hyper-parameters alone.
std::vector<std::vector<std::size_t>> like_groups(
    std::span<const GroupToUpdate> groups);

}  // namespace fuse
