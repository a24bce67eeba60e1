#include "optim/optimizer.h"

#include <algorithm>
#include <map>
#include <set>

#include "error.h"
#include "foreach.h"

namespace fuse {
namespace {

std::string full_name(const char* name, int index) {
  return index < 0 ? name
                   : std::string(name) + "[" + std::to_string(index) + "]";
}

}  // namespace

Scalar& ParamGroup::operator[](const std::string& name) {
  std::string known;
  for (const Named& named : scalars()) {
    const std::string candidate = full_name(named.name, named.index);
    if (candidate == name) return *named.scalar;
    known += (known.empty() ? "" : ", ") + candidate;
  }
  throw Error("a parameter group of this optimizer has no \"" + name +
              "\"; it has " + known);
}

void check_parameters(const std::vector<const ParamGroup*>& groups) {
  std::set<const TensorImpl*> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g]->params.size(); ++i) {
      const std::string name = "parameter " + std::to_string(i) +
                               " of group " + std::to_string(g);
      const Tensor& param = groups[g]->params[i];
      if (!param.defined()) {
        throw Error("optimizer: " + name + " is an undefined tensor");
      }
      if (!seen.insert(param.impl().get()).second) {
        throw Error("optimizer: " + name +
                    " stands in the groups more than once; list every "
                    "parameter once");
      }
    }
  }
  if (seen.empty()) throw Error("optimizer got an empty parameter list");
}

bool BatchCache::current(const std::vector<Tensor>& params,
                         bool foreach) const {
  if (seen_.size() != params.size() || foreach != foreach_) return false;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i].impl()->grad != seen_[i].impl()) return false;
  }
  return true;
}

void BatchCache::create_missing(const std::vector<Tensor>& params,
                                const std::vector<StateSpec>& specs) {
  std::vector<const Tensor*> fresh;
  for (const Tensor& param : params) {
    const auto known = states_.find(param.impl().get());
    const bool complete =
        known != states_.end() && known->second.tensors.size() == specs.size();
    if (param.grad().defined() && !complete) fresh.push_back(&param);
  }
  const std::vector<Tensor> steps = scalars(fresh.size());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    ParamState& state = states_[fresh[i]->impl().get()];
    if (!state.step.defined()) state.step = steps[i];
    for (std::size_t s = state.tensors.size(); s < specs.size(); ++s) {
      state.tensors.push_back(
          full(fresh[i]->shape(), specs[s].initial, fresh[i]->dtype()));
    }
  }
}

void BatchCache::add_batch(const std::vector<Tensor>& params,
                           const std::vector<StateSpec>& specs) {
  std::vector<Tensor> grads;
  std::vector<Tensor> steps;
  std::vector<std::vector<Tensor>> states(specs.size());
  for (const Tensor& param : params) {
    const ParamState& state = states_.at(param.impl().get());
    grads.push_back(param.grad());
    steps.push_back(state.step);
    for (std::size_t s = 0; s < specs.size(); ++s) {
      states[s].push_back(state.tensors[s]);
    }
  }
  Batch batch;
  batch.params = TensorList(params, "params");
  batch.grads = TensorList(std::move(grads), "grads");
  batch.steps = TensorList::per_tensor(std::move(steps), "steps");
  for (std::size_t s = 0; s < specs.size(); ++s) {
    const std::string label = std::string(specs[s].name) + "s";
    batch.states.emplace_back(std::move(states[s]), label.c_str());
  }
  batches_.push_back(std::move(batch));
}

void BatchCache::rebuild(const std::vector<Tensor>& params,
                         const std::vector<StateSpec>& specs, bool foreach) {
  create_missing(params, specs);
  batches_.clear();
  std::map<DType, std::vector<Tensor>> by_dtype;
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    if (foreach) {
      by_dtype[param.dtype()].push_back(param);
    } else {
      add_batch({param}, specs);
    }
  }
  for (const auto& [dtype, tensors] : by_dtype) add_batch(tensors, specs);
  seen_.clear();
  for (const Tensor& param : params) seen_.push_back(param.grad());
  names_.clear();
  for (const StateSpec& spec : specs) names_.push_back(spec.name);
  foreach_ = foreach;
}

Tensor BatchCache::state(const Tensor& param, const std::string& name) const {
  const auto found = states_.find(param.impl().get());
  if (found == states_.end()) return {};
  if (name == "step") return found->second.step;
  for (std::size_t s = 0; s < names_.size(); ++s) {
    if (name == names_[s]) return found->second.tensors[s];
  }
  return {};
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (std::size_t g = 0; g < group_count(); ++g) {
    const auto& params = group(g).params;
    all.insert(all.end(), params.begin(), params.end());
  }
  return all;
}

void Optimizer::zero_grad(bool set_to_none) const {
  std::map<DType, std::vector<Tensor>> grads;
  for (Tensor param : parameters()) {
    const Tensor grad = param.grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      param.set_grad(Tensor());
    } else {
      grads[grad.dtype()].push_back(grad);
    }
  }
  for (auto& [dtype, list] : grads) {
    foreach_zero_(TensorList(std::move(list), "grads"));
  }
}

}  // namespace fuse
