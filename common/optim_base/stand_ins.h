#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusebook/optim_base/optimizer.h"
#include "fusebook/optim_base/recent_batches.h"

namespace fuse {

/// Small tensors that take the place of an optimizer's parameters for a step that
/// is only recorded: in each group one of each kind. They have states and lists of
/// their own, kept for the next time, so that nothing of it stays in the
/// optimizer, and a recording costs the same for any number of parameters.
class StandIns {
 public:
  /// For the parameters that the groups have now.
  explicit StandIns(Optimizer& optimizer);

  /// A step of them, without the hooks of steps or with them; counts as the step
  /// that comes next. To be called in a recording that is never executed.
  void step(bool with_hooks = false);
  /// Begins anew: the next step is their first one.
  void forget();

 private:
  class InPlace;

  Optimizer& optimizer_;
  std::vector<std::vector<Tensor>> params_;  // of each group
  std::vector<std::vector<std::string>> names_;
  RecentBatches batches_;
  std::shared_ptr<Optimizer::Kept> kept_ = std::make_shared<Optimizer::Kept>();
};

}  // namespace fuse
