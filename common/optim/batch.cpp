#include "optim/batch.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
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

}  // namespace

const TensorList& Batch::state(std::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error("this optimizer keeps no state \"" + std::string(name) + "\"");
  }
  return states[std::size_t(found - names.begin())];
}

std::vector<std::vector<std::size_t>> partition(
    const std::vector<Tensor>& params, bool foreach,
    const GradientSource& gradients) {
  std::vector<std::vector<std::size_t>> parts;
  using Kind = std::tuple<std::uint8_t, DType, DType>;
  std::map<Kind, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!gradients.has(params, i)) continue;
    if (foreach) {
      const std::uint8_t memory = memory_code(params[i].device());
      const DType dtype = gradients.dtype(params, i);
      alike[{memory, params[i].dtype(), dtype}].push_back(i);
    } else {
      parts.push_back({i});
    }
  }
  for (auto& [key, places] : alike) parts.push_back(std::move(places));
  return parts;
}

BatchCache::Change BatchCache::refresh(const std::vector<Tensor>& params,
                                       std::span<const StateSpec> specs,
                                       bool foreach, const StateStore& store,
                                       const GradientSource& gradients) {
  if (!same_tensors(params, params_)) return Change::params;
  // Options such as amsgrad may be switched between two steps.
  const bool same_names =
      std::equal(specs.begin(), specs.end(), names_.begin(), names_.end(),
                 [](const StateSpec& spec, std::string_view name) {
                   return spec.name == name;
                 });
  if (foreach != foreach_ || version_ != store.version() || !same_names ||
      !gradients.like(source_)) {
    return Change::batches;
  }
  return follow(gradients) ? Change::nothing : Change::batches;
}

// False where other parameters have a gradient now, or one of another kind.
bool BatchCache::follow(const GradientSource& gradients) {
  for (const std::size_t i : without_) {
    if (gradients.has(params_, i)) return false;
  }
  for (std::size_t b = 0; b < batches_.size(); ++b) {
    if (!follow(b, gradients)) return false;
  }
  return true;
}

bool BatchCache::follow(std::size_t batch, const GradientSource& gradients) {
  TensorList& grads = batches_[batch].grads;
  if (!gradients.given()) {
    return follow_gradients(grads) != fuse::Change::other;
  }
  const auto addresses = gather(places_[batch], gradients);
  void* const none = nullptr;
  if (std::find(addresses.begin(), addresses.end(), none) != addresses.end()) {
    return false;
  }
  follow_addresses(grads, addresses);
  return true;
}

std::span<void* const> BatchCache::gather(const Places& places,
                                          const GradientSource& gradients) {
  addresses_.resize(places.size());
  std::transform(places.begin(), places.end(), addresses_.begin(),
                 [&](std::size_t i) { return gradients.address(i); });
  return addresses_;
}

Batch BatchCache::make_batch(const Places& places,
                             std::span<const StateSpec> specs,
                             const StateStore& store,
                             const GradientSource& gradients) {
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
  batch.grads =
      gradients.given()
          ? foreign_list(batch.params, gather(places, gradients), "grads",
                         "step", gradients.dtype(params_, places[0]))
          : gradient_list(batch.params, "grads");
  batch.steps = TensorList::per_tensor(std::move(steps), "steps");
  for (std::size_t s = 0; s < specs.size(); ++s) {
    batch.states.push_back(make_state_list(specs[s], std::move(states[s])));
    batch.names.push_back(specs[s].name);
  }
  return batch;
}

void BatchCache::rebuild(const std::vector<Tensor>& params,
                         std::span<const StateSpec> specs, bool foreach,
                         StateStore& store, const GradientSource& gradients) {
  version_ = unfinished;  // until all of it is there
  std::vector<Tensor> updated;
  without_.clear();
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (gradients.has(params, i)) {
      updated.push_back(params[i]);
    } else {
      without_.push_back(i);
    }
  }
  store.create(updated, specs);
  params_ = params;
  names_.clear();
  for (const StateSpec& spec : specs) names_.push_back(spec.name);
  foreach_ = foreach;
  source_ = gradients.part(0, 0);
  places_ = partition(params, foreach, gradients);
  batches_.clear();
  for (const Places& places : places_) {
    batches_.push_back(make_batch(places, specs, store, gradients));
  }
  version_ = store.version();
}

}  // namespace fuse
