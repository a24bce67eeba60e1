#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "fusebook/optim_base/param_group.h"

namespace fuse {

/// What a run may have changed since it was saved.
struct LoadOptions {
  /// Parameters that have another name now: the saved one, and the one here.
  std::map<std::string, std::string> renames;
};

/// For each saved group the places of its parameters in the group here: where
/// both sides have names, those of their names, else the same. `where` says in
/// messages where the saved groups are ("in the file"). Throws one Error that
/// names every parameter, in all groups, that only one side has, and for
/// `renames` of names that were not saved.
std::vector<std::vector<std::size_t>> places_by_name(
    const std::vector<const ParamGroup*>& here,
    const std::vector<std::vector<std::string>>& saved,
    const std::string& where, const LoadOptions& options);

}  // namespace fuse
