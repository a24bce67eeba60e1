#include "fusebook/distributed/whole_states.h"

#include <utility>

#include "fusebook/distributed/share_states.h"

namespace fuse {
WholeStates::WholeStates(ShardedOptimizer& sharded) : sharded_(sharded) {
  Optimizer& optimizer = sharded_.optimizer_;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    ParamGroup& group = optimizer.group(g);
    own_.push_back(std::exchange(group.params, {}));
    names_.push_back(std::exchange(group.param_names, sharded_.names_[g]));
  }
  for (std::size_t p = 0; p < sharded_.params_.size(); ++p) {
    optimizer.group(sharded_.group_of_[p])
        .params.push_back(sharded_.params_[p]);
  }
}

WholeStates::~WholeStates() {
  Optimizer& optimizer = sharded_.optimizer_;
  for (const Tensor& each : sharded_.params_) {
    optimizer.restore_states(each, {});
  }
  for (std::size_t g = 0; g < own_.size(); ++g) {
    optimizer.group(g).params = std::move(own_[g]);
    optimizer.group(g).param_names = std::move(names_[g]);
  }
}

void WholeStates::share() {
  std::size_t next = 0;
  for (const Share& each : sharded_.shares_) {
    if (each.owner != sharded_.ranks_.rank()) continue;
    share_states(sharded_.optimizer_, sharded_.params_[each.param], each,
                 sharded_.own_[next++]);
  }
}

}  // namespace fuse
