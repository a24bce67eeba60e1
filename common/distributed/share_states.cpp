#include "fusebook/distributed/share_states.h"

#include <utility>

namespace fuse {

bool is_number(const Tensor& state, const Tensor& param) {
  return state.dim() == 0 && param.dim() != 0;
}

void share_states(Optimizer& optimizer, const Tensor& param, const Share& share,
                  const Tensor& view) {
  ParamStates states = optimizer.states(param);
  for (auto& [name, state] : states) {
    if (is_number(state, param) || share.count == param.numel()) {
      state = state.clone();
    } else {
      state = view_of(share, state).clone();
    }
  }
  optimizer.restore_states(view, states);
}

}  // namespace fuse
