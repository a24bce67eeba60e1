#include "fusebook/optim_base/batch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fusebook/support/error.h"
#include "fusebook/tensor/borrowed_list.h"

namespace fuse {
namespace {

TensorList make_state_list(const StateSpec& spec, std::vector<Tensor> tensors) {
  const std::string label = std::string(spec.name) + "s";
  return spec.rate == Rate::entry
             ? TensorList::per_tensor(std::move(tensors), label.c_str())
             : TensorList(std::move(tensors), label.c_str());
}

TensorList positions_of(const TensorList& params, const StateStore& store) {
  std::vector<std::int64_t> first;
  for (const Tensor& param : params) {
    first.push_back(store.first_element(param));
  }
  return position_list(params, first, "positions");
}

}  // namespace

const TensorList& Batch::state(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("this optimizer keeps no state \"" + std::string(name) + "\"");
  }
  return states[found - names.begin()];
}

std::any& Batch::kept_place(const std::string& name) const {
  if (kept == nullptr) throw Error("Batch::keep: the batch was moved from");
  return (*kept)[name];
}

Batch make_batch(std::vector<Tensor> params, std::span<const StateSpec> specs,
                 const StateStore& store,
                 const std::optional<GivenGradients>& gradients) {
  std::vector<Tensor> steps;
  std::vector<std::vector<Tensor>> states(specs.size());
  for (const Tensor& param : params) {
    const StateStore::Entry* const known = store.find(param);
    if (known == nullptr) {
      throw Error("make_batch: a parameter has no states; create them first");
    }
    const StateStore::Entry& entry = *known;
    steps.push_back(entry.step);
    for (std::size_t s = 0; s < specs.size(); ++s) {
      const auto state = entry.tensors.find(specs[s].name);
      // Only 16-bit parameters have masters, and only some shapes some states;
      // a batch is of one dtype, and of matrices or not.
      const bool may_lack = is_master(specs[s]) || is_rounding_key(specs[s]) ||
                            !has_state(specs[s], param);
      if (state == entry.tensors.end() && may_lack) continue;
      states[s].push_back(entry.tensors.at(std::string(specs[s].name)));
    }
  }
  Batch batch;
  batch.params = TensorList(std::move(params), "params");
  batch.grads = gradients ? foreign_list(batch.params, gradients->addresses,
                                         "grads", "step", gradients->dtype)
                          : gradient_list(batch.params, "grads");
  batch.steps = TensorList::per_tensor(std::move(steps), "steps");
  for (std::size_t s = 0; s < specs.size(); ++s) {
    if (is_rounding_key(specs[s])) {
      if (states[s].empty()) continue;
      batch.rounding_keys =
          TensorList::per_tensor(std::move(states[s]), "rounding_keys");
      batch.positions = positions_of(batch.params, store);
      continue;
    }
    if (is_master(specs[s])) {
      if (states[s].empty()) continue;
      const bool split = specs[s].name == low_half_name;
      TensorList& list = split ? batch.low_halves : batch.masters;
      list = TensorList(std::move(states[s]), split ? "low_halves" : "masters");
      continue;
    }
    batch.states.push_back(make_state_list(specs[s], std::move(states[s])));
    batch.names.push_back(specs[s].name);
  }
  return batch;
}

}  // namespace fuse
