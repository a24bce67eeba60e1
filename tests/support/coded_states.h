// What tests of optimizers with states in 8 bits share.
#pragma once

#include <string>
#include <vector>

#include "fusebook/optim/all.h"
#include "support/lion.h"
#include "support/masters_testing.h"
#include "support/optimizer_rules.h"

namespace coded_states {

using namespace fuse;

using masters_testing::set_gradients;

inline bool is_coded(const Optimizer& optimizer, const Tensor& param,
                     const std::string& name) {
  return in_blocks(optimizer.state(param, name).dtype());
}

// What the states of an optimizer in float32 would be if they had been coded as
// those of another one.
inline void code_states(const Optimizer& coded,
                        const std::vector<Tensor>& its_params,
                        const Optimizer& wide,
                        const std::vector<Tensor>& params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    for (const auto& [name, state] : wide.states(params[i])) {
      const DType dtype = coded.state(its_params[i], name).dtype();
      Tensor(state).copy_(state.to(dtype));
    }
  }
}

inline bool same_states(const Optimizer& a,
                        const std::vector<Tensor>& params_of_a,
                        const Optimizer& b,
                        const std::vector<Tensor>& params_of_b) {
  for (std::size_t i = 0; i < params_of_a.size(); ++i) {
    for (const auto& [name, state] : a.states(params_of_a[i])) {
      const Tensor other = b.state(params_of_b[i], name);
      if (!bitwise_equal(state.cpu(), other.cpu())) return false;
    }
  }
  return true;
}

// Calls use.operator()<Kind>(options) for each optimizer, and for one of a user's.
template <class Use>
void for_each_kind(Use use) {
  optimizer_rules::for_each_kind(use);
  use.template operator()<Adam>(AdamOptions{.amsgrad = true});
  use.template operator()<AdamW>(AdamWOptions{});
  use.template operator()<Lion>(LionOptions{.lr = 0.01});
}

}  // namespace coded_states
