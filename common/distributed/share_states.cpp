#include "fusebook/distributed/share_states.h"

#include <utility>

namespace fuse {

void share_states(Optimizer& optimizer, const Tensor& param, const Share& share,
                  const Tensor& view) {
  ParamStates states = optimizer.states(param);
  for (auto& [name, state] : states) {
    const bool is_number = state.dim() == 0 && param.dim() != 0;
    if (is_number || share.count == param.numel()) {
      state = state.clone();
    } else {
      state = view_of(share, state).clone();
    }
  }
  optimizer.restore_states(view, states);
}

}  // namespace fuse
