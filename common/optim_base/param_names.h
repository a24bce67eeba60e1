#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fusebook/optim_base/param_group.h"

namespace fuse {

/// What may have changed since the run was saved.
struct LoadOptions {
  /// Parameters that were renamed: the saved name, and the name here.
  std::map<std::string, std::string> renames;
};

/// How messages name a group: `param_groups[2]`.
std::string group_name(std::size_t group);

/// For each saved group, the indices of its parameters in the group here:
/// matched by name if both sides have names, else unchanged. `where` says in
/// messages where the saved groups are ("in the file"). Throws a single Error
/// that names every parameter, in all groups, that only one side has, and every
/// name in `renames` that was not saved.
std::vector<std::vector<std::size_t>> places_by_name(
    const std::vector<const ParamGroup*>& here,
    const std::vector<std::vector<std::string>>& saved,
    const std::string& where, const LoadOptions& options);

}  // namespace fuse
