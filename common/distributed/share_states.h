#pragma once

#include "fusebook/distributed/shares.h"
#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// True for a state that is one number for the parameter, such as its step count.
bool is_number(const Tensor& state, const Tensor& param);

/// Gives the view of a share the states that its parameter has, and no others.
void share_states(Optimizer& optimizer, const Tensor& param, const Share& share,
                  const Tensor& view);

}  // namespace fuse
