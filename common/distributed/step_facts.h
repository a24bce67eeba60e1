#pragma once

#include <string>
#include <vector>

#include "fusebook/distributed/sharded_optimizer.h"

namespace fuse {

/// True if the step takes the scale of a scaler out of its gradients.
bool scales(const ShardedStep& options);
/// What a step does with its gradients, which must be the same on all ranks.
std::vector<std::string> facts_of_step(const ShardedStep& options);

}  // namespace fuse
