#include "optim/optimizer.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <typeinfo>

#include "error.h"
#include "foreach.h"
#include "number_text.h"
#include "tensor_layout.h"

namespace fuse {
namespace {

std::vector<const ParamGroup*> groups_of(const Optimizer& optimizer) {
  std::vector<const ParamGroup*> all;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    all.push_back(&optimizer.group(g));
  }
  return all;
}

}  // namespace

void Optimizer::check_group(std::size_t index) const {
  if (index < group_count()) return;
  throw Error(name() + ": there is no parameter group " + number_text(index) +
              "; it has " + number_text(group_count()) + ", counted from 0");
}

void Optimizer::check_groups() const {
  const auto groups = groups_of(*this);
  check_parameters(groups);
  const bool any =
      std::any_of(groups.begin(), groups.end(),
                  [](const auto* group) { return !group->params.empty(); });
  if (!any) throw Error("optimizer got an empty parameter list");
}

void Optimizer::check_joining(const ParamGroup& group) const {
  auto groups = groups_of(*this);
  groups.push_back(&group);
  check_parameters(groups);
}

void Optimizer::step() {
  ++steps_;
  refresh_batches();
  for (std::size_t g = 0; g < batches_.size(); ++g) {
    group(g).name_numbers(int(g));
    for (const Batch& batch : batches_[g].batches()) update_group(g, batch);
  }
}

// Usually nothing is new but where the gradients are.
void Optimizer::refresh_batches() {
  using Change = BatchCache::Change;
  batches_.resize(group_count());
  std::vector<std::size_t> changed;
  Change most = Change::nothing;
  for (std::size_t g = 0; g < batches_.size(); ++g) {
    const ParamGroup& own = group(g);
    const Change change =
        batches_[g].refresh(own.params, specs_of(g), own.foreach (), states_);
    if (change >= Change::batches) changed.push_back(g);
    most = std::max(most, change);
  }
  if (most == Change::params) check_parameters(groups_of(*this));
  for (const std::size_t g : changed) rebuild(g);
  if (most == Change::params) states_.drop_unreachable();
}

void Optimizer::rebuild(std::size_t group_index) {
  ParamGroup& own = group(group_index);
  batches_[group_index].rebuild(own.params,
                                with_initials(specs_of(group_index), own),
                                own.foreach (), states_);
}

void Optimizer::check_states(const std::string& place, std::size_t group_index,
                             const Tensor& param,
                             const ParamStates& states) const {
  check_group(group_index);
  fuse::check_states(place, param, specs_of(group_index), states);
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
    const ParamGroup& own = group(g);
    for (const auto& places : partition(own.params, own.foreach ())) {
      std::vector<Tensor> grads;
      std::set<const void*> known;  // several may share a gradient
      for (const std::size_t i : places) {
        Tensor param = own.params[i];
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
