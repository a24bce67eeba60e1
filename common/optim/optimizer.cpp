#include "optim/optimizer.h"

#include <algorithm>
#include <set>
#include <typeinfo>
#include <utility>

#include "call_place.h"
#include "class_name.h"
#include "error.h"
#include "foreach.h"
#include "number_text.h"
#include "recorder.h"
#include "rehearsal.h"
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

// What a list was, in the end.
class PutBack {
 public:
  explicit PutBack(TensorList& list) : list_(list), was_(list) {}
  PutBack(const PutBack&) = delete;
  PutBack& operator=(const PutBack&) = delete;
  ~PutBack() { list_ = std::move(was_); }

 private:
  TensorList& list_;
  TensorList was_;
};

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

Optimizer::Optimizer(Optimizer&& other) noexcept { *this = std::move(other); }

// What was moved from is an optimizer without groups.
Optimizer& Optimizer::operator=(Optimizer&& other) noexcept {
  kept_.swap(other.kept_);
  batches_.swap(other.batches_);
  unchecked_.swap(other.unchecked_);
  rehearsed_.swap(other.rehearsed_);
  before_step_.swap(other.before_step_);
  after_step_.swap(other.after_step_);
  std::swap(moved_from_, other.moved_from_);
  other.moved_from_ = true;
  return *this;
}

void Optimizer::Kept::undo() {
  --steps;
  states.take_back();
}

void Optimizer::step(std::source_location place) {
  before_step_->call(*this);
  make_step({}, place);
  after_step_->call(*this);
}

void Optimizer::step(const GradientAddresses& gradients,
                     std::source_location place) {
  before_step_->call(*this);
  check_count(gradients);
  make_step(GradientSource(gradients), place);
  after_step_->call(*this);
}

void Optimizer::check_count(const GradientAddresses& gradients) const {
  std::size_t count = 0;
  for (std::size_t g = 0; g < group_count(); ++g) {
    count += group(g).params.size();
  }
  if (gradients.grads.size() == count) return;
  throw Error(
      name() + ": step takes one gradient's address for each of the " +
      number_text(count) + " parameters, not " +
      number_text(gradients.grads.size()) +
      "; they come in the order of parameters(), and null stands for no "
      "gradient");
}

void Optimizer::make_step(const GradientSource& gradients,
                          std::source_location place) {
  if (moved_from_ && group_count() == 0) {
    throw Error(name() + "::step: the optimizer was moved from, at " +
                at(place));
  }
  const CallPlace call(place);
  Recorder* const recorder = Recorder::current();
  ++kept_->steps;
  bool begun = false;
  try {
    refresh_batches(gradients);
    tell_facts(place);
    if (recorder == nullptr) rehearse_groups();
    begun = true;
    update_groups();
  } catch (...) {
    if (recorder != nullptr && begun) recorder->fail();
    kept_->undo();
    throw;
  }
  if (recorder != nullptr) {
    recorder->on_failure(kept_);
  } else {
    kept_->keep();
  }
}

void Optimizer::update_groups() {
  for (std::size_t g = 0; g < batches_.size(); ++g) {
    for (Batch& batch : batches_[g].batches()) update_batch(g, batch);
  }
}

// Gradients of another dtype are converted where they are read; only outside of
// a recording that takes a pass of its own.
void Optimizer::update_batch(std::size_t group, Batch& batch) const {
  const DType dtype = batch.params.impl()->dtype;
  if (batch.grads.impl()->dtype == dtype) return update_group(group, batch);
  const PutBack own(batch.grads);
  batch.grads = foreach_to(batch.grads, dtype);
  update_group(group, batch);
}

// A batch lies on one device, which is what one recording can do.
void Optimizer::rehearse_groups() {
  std::vector<std::uint64_t> gradients;
  for (std::size_t g = 0; g < batches_.size(); ++g) {
    const bool all_new = unchecked_[g] != BatchCache::Change::nothing;
    for (Batch& batch : batches_[g].batches()) {
      const std::size_t k = gradients.size();
      const ListImpl* const grads = batch.grads.impl().get();
      gradients.push_back(grads->content_hash);
      const bool moved =
          k >= rehearsed_.size() || rehearsed_[k] != gradients[k];
      rehearse([&] { update_batch(g, batch); },
               [&](const ListImpl& list) {
                 return all_new || (moved && &list == grads);
               });
    }
  }
  rehearsed_ = std::move(gradients);
  unchecked_.assign(batches_.size(), BatchCache::Change::nothing);
}

// Usually nothing is new but where the gradients are.
void Optimizer::refresh_batches(const GradientSource& gradients) {
  using Change = BatchCache::Change;
  batches_.resize(group_count());
  unchecked_.resize(group_count(), Change::params);
  std::vector<std::pair<std::size_t, GradientSource>> changed;
  std::size_t first = 0;
  Change most = Change::nothing;
  for (std::size_t g = 0; g < batches_.size(); ++g) {
    const ParamGroup& own = group(g);
    const GradientSource its = gradients.part(first, own.params.size());
    first += own.params.size();
    const Change change = batches_[g].refresh(
        own.params, specs_of(g), own.foreach (), kept_->states, its);
    if (change >= Change::batches) changed.emplace_back(g, its);
    unchecked_[g] = std::max(unchecked_[g], change);
    most = std::max(most, change);
    group(g).name_numbers(int(g));
  }
  if (most == Change::params) check_parameters(groups_of(*this));
  for (const auto& [g, its] : changed) rebuild(g, its);
  if (most == Change::params) kept_->states.drop_unreachable();
}

void Optimizer::rebuild(std::size_t group_index,
                        const GradientSource& gradients) {
  ParamGroup& own = group(group_index);
  batches_[group_index].rebuild(own.params,
                                with_initials(specs_of(group_index), own),
                                own.foreach (), kept_->states, gradients);
}

void Optimizer::check_states(const std::string& place, std::size_t group_index,
                             const Tensor& param,
                             const ParamStates& states) const {
  check_group(group_index);
  fuse::check_states(place, param, specs_of(group_index), states);
}

std::string Optimizer::name() const { return class_name(typeid(*this)); }

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (std::size_t g = 0; g < group_count(); ++g) {
    const auto& params = group(g).params;
    all.insert(all.end(), params.begin(), params.end());
  }
  return all;
}

void Optimizer::zero_grad(bool set_to_none, std::source_location place) const {
  const CallPlace call(place);
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
