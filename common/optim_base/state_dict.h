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

/// What an optimizer has learnt and how it is set, in the structure of torch's
/// `Optimizer.state_dict()`. Parameters go by numbers, counted through all
/// groups; they themselves are not part of it.
struct StateDict {
  /// A parameter group.
  struct Group {
    GroupOptions options;  ///< every number and switch by its name
    /// Where schedules start from, if one did.
    std::optional<double> initial_lr;
    std::vector<std::size_t> params;       ///< Numbers of its parameters.
    std::vector<std::string> param_names;  ///< empty without names
  };

  std::string optimizer;   ///< name of its class, such as "Adam"
  std::int64_t steps = 0;  ///< How often `step` was called.
  /// Of parameters that had a step.
  std::map<std::size_t, ParamStates> state;
  std::vector<Group> param_groups;  ///< In the order of the optimizer's.
};

}  // namespace fuse
