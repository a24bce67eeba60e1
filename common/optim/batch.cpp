#include "optim/batch.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "borrowed_list.h"
#include "error.h"

namespace fuse {
namespace {

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

bool has_gradient(const Tensor& param) {
  return param.defined() && param.grad().defined();
}

}  // namespace

const TensorList& Batch::state(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("this optimizer keeps no state \"" + std::string(name) + "\"");
  }
  return states[std::size_t(found - names.begin())];
}

std::vector<std::vector<std::size_t>> partition(
    const std::vector<Tensor>& params, bool foreach) {
  std::vector<std::vector<std::size_t>> parts;
  std::map<std::pair<std::uint8_t, DType>, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!has_gradient(params[i])) continue;
    if (foreach) {
      const std::uint8_t memory = memory_code(params[i].device());
      alike[{memory, params[i].dtype()}].push_back(i);
    } else {
      parts.push_back({i});
    }
  }
  for (auto& [key, places] : alike) parts.push_back(std::move(places));
  return parts;
}

BatchCache::Change BatchCache::refresh(const std::vector<Tensor>& params,
                                       std::span<const StateSpec> specs,
                                       bool foreach, const StateStore& store) {
  if (!same_tensors(params, params_)) return Change::params;
  // Options such as amsgrad may be switched between two steps.
  const bool same_names =
      std::equal(specs.begin(), specs.end(), names_.begin(), names_.end(),
                 [](const StateSpec& spec, std::string_view name) {
                   return spec.name == name;
                 });
  if (foreach != foreach_ || version_ != store.version() || !same_names) {
    return Change::batches;
  }
  return follow() ? Change::nothing : Change::batches;
}

// False where other parameters have a gradient now, or one of another kind.
bool BatchCache::follow() {
  for (const std::size_t i : without_) {
    if (params_[i].impl()->grad != nullptr) return false;
  }
  return std::all_of(batches_.begin(), batches_.end(), [](Batch& batch) {
    return follow_gradients(batch.grads) != fuse::Change::other;
  });
}

Batch BatchCache::make_batch(const Places& places,
                             std::span<const StateSpec> specs,
                             const StateStore& store) const {
  std::vector<Tensor> params;
  std::vector<Tensor> steps;
  std::vector<std::vector<Tensor>> states(specs.size());
  for (const std::size_t i : places) {
    const StateStore::Entry& entry = *store.find(params_[i]);
    params.push_back(params_[i]);
    steps.push_back(entry.step);
    for (std::size_t s = 0; s < specs.size(); ++s) {
      states[s].push_back(entry.tensors.at(specs[s].name));
    }
  }
  Batch batch;
  batch.params = TensorList(std::move(params), "params");
  batch.grads = gradient_list(batch.params, "grads");
  batch.steps = TensorList::per_tensor(std::move(steps), "steps");
  for (std::size_t s = 0; s < specs.size(); ++s) {
    batch.states.push_back(make_state_list(specs[s], std::move(states[s])));
    batch.names.push_back(specs[s].name);
  }
  return batch;
}

void BatchCache::rebuild(const std::vector<Tensor>& params,
                         std::span<const StateSpec> specs, bool foreach,
                         StateStore& store) {
  version_ = unfinished;  // until all of it is there
  std::vector<Tensor> updated;
  std::copy_if(params.begin(), params.end(), std::back_inserter(updated),
               has_gradient);
  store.create(updated, specs);
  params_ = params;
  without_.clear();
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!has_gradient(params[i])) without_.push_back(i);
  }
  names_.clear();
  for (const StateSpec& spec : specs) names_.push_back(spec.name);
  foreach_ = foreach;
  places_ = partition(params, foreach);
  batches_.clear();
  for (const Places& places : places_) {
    batches_.push_back(make_batch(places, specs, store));
  }
  version_ = store.version();
}

}  // namespace fuse
