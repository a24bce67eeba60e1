#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fusebook/optim_base/param_group.h"
#include "fusebook/optim_base/state_store.h"

namespace fuse {

/// The state and settings of an optimizer, in the structure of torch's
/// `Optimizer.state_dict()`. Parameters are referred to by number, counting
/// through all groups; they themselves are not included.
struct StateDict {
  /// A parameter group.
  struct Group {
    GroupOptions options;  ///< every number and switch, by name
    /// The rate that schedules start from, if there is one.
    std::optional<double> initial_lr;
    std::vector<std::size_t> params;       ///< The numbers of its parameters.
    std::vector<std::string> param_names;  ///< empty if unnamed
  };

  std::string optimizer;   ///< name of its class, such as "Adam"
  std::int64_t steps = 0;  ///< Number of calls to `step`.
  /// The states of parameters that were updated at least once.
  std::map<std::size_t, ParamStates> state;
  std::vector<Group> param_groups;  ///< In the order of the optimizer's groups.
};

}  // namespace fuse
