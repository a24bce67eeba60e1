#include "optim/optimizer.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <typeinfo>

#include "error.h"
#include "foreach.h"
#include "tensor_layout.h"

namespace fuse {
namespace {

std::string full_name(const char* name, int index) {
  return index < 0 ? name
                   : std::string(name) + "[" + std::to_string(index) + "]";
}

// Does `text` say "name", or "name[index]"?
bool goes_by(std::string_view text, std::string_view name, int index) {
  if (index < 0) return text == name;
  return text.size() == name.size() + 3 && text.starts_with(name) &&
         text[name.size()] == '[' && text[name.size() + 1] == '0' + index &&
         text.back() == ']';
}

// The parameters that have a gradient, as they are updated: together for each
// dtype, or without `foreach` one by one.
std::vector<std::vector<Tensor>> partition(const std::vector<Tensor>& params,
                                           bool foreach) {
  std::vector<std::vector<Tensor>> parts;
  std::map<std::pair<std::uint8_t, DType>, std::vector<Tensor>> alike;
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    if (foreach) {
      const auto key = std::pair(memory_code(param.device()), param.dtype());
      alike[key].push_back(param);
    } else {
      parts.push_back({param});
    }
  }
  for (auto& [key, tensors] : alike) parts.push_back(std::move(tensors));
  return parts;
}

TensorList make_state_list(const StateSpec& spec, std::vector<Tensor> tensors) {
  const std::string label = std::string(spec.name) + "s";
  return spec.rate == Rate::entry
             ? TensorList::per_tensor(std::move(tensors), label.c_str())
             : TensorList(std::move(tensors), label.c_str());
}

bool same_tensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const Tensor& x, const Tensor& y) { return x.impl() == y.impl(); });
}

std::vector<Tensor> gradients_of(const std::vector<Tensor>& params) {
  std::vector<Tensor> grads;
  for (const Tensor& param : params) grads.push_back(param.grad());
  return grads;
}

}  // namespace

std::vector<ParamGroup::Named> ParamGroup::scalars() {
  std::vector<Named> all;
  visit_scalars(&all, [](void* list, const Named& named) {
    static_cast<std::vector<Named>*>(list)->push_back(named);
  });
  return all;
}

// Schedulers look up what they move at every step: no memory is asked for.
Scalar* ParamGroup::find(const std::string& name) {
  struct Search {
    std::string_view name;
    Scalar* found;
  } search{name, nullptr};
  visit_scalars(&search, [](void* context, const Named& named) {
    auto& wanted = *static_cast<Search*>(context);
    if (goes_by(wanted.name, named.name, named.index)) {
      wanted.found = named.scalar;
    }
  });
  return search.found;
}

std::vector<std::pair<std::string, Scalar*>> ParamGroup::numbers() {
  std::vector<std::pair<std::string, Scalar*>> all;
  for (const Named& named : scalars()) {
    all.emplace_back(full_name(named.name, named.index), named.scalar);
  }
  return all;
}

Scalar& ParamGroup::operator[](const std::string& name) {
  if (Scalar* const found = find(name)) return *found;
  std::string known;
  for (const Named& named : scalars()) {
    const std::string candidate = full_name(named.name, named.index);
    known += (known.empty() ? "" : ", ") + candidate;
  }
  throw Error("a parameter group of this optimizer has no \"" + name +
              "\"; it has " + known);
}

namespace {

// Whether a state is one number of a parameter; throws for an unknown name.
bool is_number(const std::string& place, std::span<const StateSpec> specs,
               const std::string& name) {
  if (name == "step") return true;
  for (const StateSpec& spec : specs) {
    if (name == spec.name) return spec.rate == Rate::entry;
  }
  throw Error(place + name +
              " is nothing that this optimizer keeps with its options");
}

std::string kind_of(const Shape& shape, DType dtype) {
  return "shape " + to_string(shape) + " and " + name_of(dtype);
}

}  // namespace

void check_states(const std::string& place, const Tensor& param,
                  std::span<const StateSpec> specs, const ParamStates& states) {
  if (states.empty()) return;
  if (!states.contains("step")) throw Error(place + "step is missing");
  for (const auto& [name, tensor] : states) {
    const bool number = is_number(place, specs, name);
    const Shape shape = number ? Shape{} : param.shape();
    const DType dtype = number ? DType::float64 : param.dtype();
    if (tensor.shape() == shape && tensor.dtype() == dtype) continue;
    throw Error(place + name + " has " +
                kind_of(tensor.shape(), tensor.dtype()) +
                " in the file, but must have " + kind_of(shape, dtype));
  }
}

void check_parameters(const std::vector<const ParamGroup*>& groups) {
  std::set<const TensorImpl*> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g]->params.size(); ++i) {
      const std::string name =
          "parameter " + std::to_string(i) + " of group " + std::to_string(g);
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

const TensorList& Batch::state(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("this optimizer keeps no state \"" + std::string(name) + "\"");
  }
  return states[std::size_t(found - names.begin())];
}

std::vector<StateSpec> with_initials(std::span<const StateSpec> specs,
                                     ParamGroup& group) {
  std::vector<StateSpec> resolved(specs.begin(), specs.end());
  for (StateSpec& spec : resolved) {
    if (spec.initial_from == nullptr) continue;
    spec.initial = group[spec.initial_from].value();
  }
  return resolved;
}

bool BatchCache::current(const std::vector<Tensor>& params,
                         std::span<const StateSpec> specs, bool foreach) const {
  if (foreach != foreach_ || !same_tensors(params, params_)) return false;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (params[i].impl()->grad != grads_[i].impl()) return false;
  }
  // Options such as amsgrad may be switched between two steps.
  return std::equal(specs.begin(), specs.end(), names_.begin(), names_.end(),
                    [](const StateSpec& spec, std::string_view name) {
                      return spec.name == name;
                    });
}

void BatchCache::create_steps(const std::vector<Tensor>& params) {
  std::vector<ParamState*> fresh;
  std::vector<Tensor> theirs;
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    ParamState& state = states_[param.impl().get()];
    state.param = param;
    if (state.step.defined()) continue;
    fresh.push_back(&state);
    theirs.push_back(param);
  }
  const std::vector<Tensor> steps = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) fresh[i]->step = steps[i];
}

void BatchCache::create_missing(const std::vector<Tensor>& params,
                                const StateSpec& spec) {
  std::vector<Tensor*> numbers;
  std::vector<Tensor> theirs;
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    Tensor& tensor = states_[param.impl().get()].tensors[spec.name];
    if (tensor.defined()) continue;
    if (spec.rate == Rate::entry) {
      numbers.push_back(&tensor);
      theirs.push_back(param);
    } else {
      tensor = empty_like(param);
      tensor.fill_(spec.initial);
    }
  }
  std::vector<Tensor> fresh = scalars_beside(theirs);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    fresh[i].fill_(spec.initial);
    *numbers[i] = fresh[i];
  }
}

void BatchCache::add_batch(const std::vector<Tensor>& params,
                           std::span<const StateSpec> specs) {
  std::vector<Tensor> grads;
  std::vector<Tensor> steps;
  std::vector<std::vector<Tensor>> states(specs.size());
  for (const Tensor& param : params) {
    const ParamState& state = states_.at(param.impl().get());
    grads.push_back(param.grad());
    steps.push_back(state.step);
    for (std::size_t s = 0; s < specs.size(); ++s) {
      states[s].push_back(state.tensors.at(specs[s].name));
    }
  }
  Batch batch;
  batch.params = TensorList(params, "params");
  batch.grads = TensorList(std::move(grads), "grads");
  batch.steps = TensorList::per_tensor(std::move(steps), "steps");
  for (std::size_t s = 0; s < specs.size(); ++s) {
    batch.states.push_back(make_state_list(specs[s], std::move(states[s])));
    batch.names.push_back(specs[s].name);
  }
  batches_.push_back(std::move(batch));
}

void BatchCache::rebuild(const std::vector<Tensor>& params,
                         std::span<const StateSpec> specs, bool foreach) {
  create_steps(params);
  for (const StateSpec& spec : specs) create_missing(params, spec);
  batches_.clear();
  for (const auto& part : partition(params, foreach)) add_batch(part, specs);
  params_ = params;
  grads_ = gradients_of(params);
  names_.clear();
  for (const StateSpec& spec : specs) names_.push_back(spec.name);
  foreach_ = foreach;
}

Tensor BatchCache::state(const Tensor& param, const std::string& name) const {
  const auto found = states_.find(param.impl().get());
  if (found == states_.end()) return {};
  if (name == "step") return found->second.step;
  const auto tensor = found->second.tensors.find(name);
  return tensor != found->second.tensors.end() ? tensor->second : Tensor();
}

ParamStates BatchCache::states(const Tensor& param) const {
  const auto found = states_.find(param.impl().get());
  if (found == states_.end() || !found->second.step.defined()) return {};
  ParamStates all = found->second.tensors;
  all.emplace("step", found->second.step);
  return all;
}

void BatchCache::restore(const std::vector<Tensor>& params,
                         const std::vector<ParamStates>& states) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (states[i].empty()) {
      states_.erase(params[i].impl().get());
      continue;
    }
    ParamState& kept = states_[params[i].impl().get()];
    kept.param = params[i];
    std::erase_if(kept.tensors, [&](const auto& state) {
      return !states[i].contains(state.first);
    });
    for (const auto& [name, value] : states[i]) {
      Tensor& tensor = name == "step" ? kept.step : kept.tensors[name];
      if (!tensor.defined()) tensor = value;
      tensor.copy_(value);
    }
  }
  // The lists are made anew by the next step.
  params_.clear();
  batches_.clear();
}

std::string Optimizer::name() const {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status),
      &std::free);
  const std::string full = status == 0 ? demangled.get() : typeid(*this).name();
  const std::size_t space = full.rfind("::");
  return space == std::string::npos ? full : full.substr(space + 2);
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
  for (std::size_t g = 0; g < group_count(); ++g) {
    // List by list as `step` does, so that both fuse.
    for (const auto& part : partition(group(g).params, group(g).foreach ())) {
      std::vector<Tensor> grads;
      std::set<const void*> known;  // several may share a gradient
      for (Tensor param : part) {
        const Tensor grad = without_repeats(param.grad());
        if (known.insert(param.grad().impl().get()).second) {
          grads.push_back(grad);
        }
        if (set_to_none) param.set_grad(Tensor());
      }
      if (!set_to_none) foreach_zero_(TensorList(std::move(grads), "grads"));
    }
  }
}

}  // namespace fuse
