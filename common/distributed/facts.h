#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fusebook/distributed/sharded_optimizer.h"

namespace fuse {

/// What must be the same on all ranks: the class of an optimizer, its step count,
/// and all numbers and switches of its groups.
std::vector<std::string> facts_of_optimizer(Optimizer& optimizer);

/// The same of parameters, in which group each is, its shape and dtype, and
/// the kind of its device.
std::vector<std::string> facts_of_params(const std::vector<Tensor>& params,
                                         const std::vector<std::size_t>& group);

/// What a step does with its gradients, which must be the same on all ranks.
std::vector<std::string> facts_of_step(const ShardedStep& options);
/// True if the step takes the scale of a scaler out of its gradients.
bool scales(const ShardedStep& options);

}  // namespace fuse
