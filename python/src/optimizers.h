#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fusebook/optim_base/optimizer.h"
#include "group_options.h"

namespace fuse::python {

/// An optimizer and its parameter groups, of whichever class.
struct AnyOptimizer {
  std::unique_ptr<Optimizer> optimizer;
  /// Replaces all groups. Throws Error, and changes nothing, for options that
  /// make no sense.
  std::function<void(std::vector<std::vector<Tensor>>,
                     const std::vector<ChosenOptions>&)>
      set_groups;
};

/// The optimizer of that name. Throws Error for any other.
AnyOptimizer make_optimizer(const std::string& name);

/// What the optimizers call their states, with whichever options.
std::set<std::string> all_state_names();

}  // namespace fuse::python
