#include "fusebook/optim_base/optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <typeinfo>
#include <utility>

#include "fusebook/foreach/foreach.h"
#include "fusebook/optim_base/as_floats.h"
#include "fusebook/optim_base/like_groups.h"
#include "fusebook/optim_base/recent_batches.h"
#include "fusebook/reports/class_name.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/kept_gradients.h"
#include "fusebook/tensor/tensor_layout.h"
#include "fusebook/trace/recorder.h"
#include "fusebook/trace/rehearsal.h"
#include "fusebook/trace/skip_scope.h"

namespace fuse {
namespace {

std::vector<const ParamGroup*> groups_of(const Optimizer& optimizer) {
  std::vector<const ParamGroup*> all;
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    all.push_back(&optimizer.group(g));
  }
  return all;
}

// Restores a list at the end.
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

void Optimizer::check_group(std::size_t index,
                            std::source_location place) const {
  if (index < group_count()) return;
  const CallPlace call(place);
  throw Error(
      fmt::format("{}: parameter group {} is out of range{}; group_count() is "
                  "{}",
                  name(), index, at_call(), group_count()));
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

struct Optimizer::Keeper final : GradientKeeper {
  explicit Keeper(Optimizer& of) : owner(of) {}

  std::vector<std::vector<Tensor>> lists_to_come() const override {
    std::vector<GroupToUpdate> groups;
    owner.gather_groups(groups);
    return owner.batches_->lists_to_come(groups);
  }

  Optimizer& owner;
};

Optimizer::Optimizer()
    : keeper_(std::make_shared<const Keeper>(*this)),
      batches_(std::make_unique<RecentBatches>()) {
  announce(keeper_);
}

Optimizer::~Optimizer() { kept_->owner = nullptr; }

Optimizer::Optimizer(Optimizer&& other) noexcept : Optimizer() {
  *this = std::move(other);
}

// A moved-from optimizer has no groups.
Optimizer& Optimizer::operator=(Optimizer&& other) noexcept {
  kept_.swap(other.kept_);
  kept_->owner = this;
  other.kept_->owner = &other;
  std::swap(batches_, other.batches_);
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

void Optimizer::step(std::source_location place) { step(StepOptions{}, place); }

void Optimizer::step(const StepOptions& options, std::source_location place) {
  before_step_->call(*this);
  make_step({}, options, place);
  after_step_->call(*this);
}

void Optimizer::step(const GradientAddresses& gradients,
                     std::source_location place) {
  step(gradients, {}, place);
}

void Optimizer::step(const GradientAddresses& gradients,
                     const StepOptions& options, std::source_location place) {
  before_step_->call(*this);
  {
    const CallPlace call(place);
    check_count(gradients);
  }
  make_step(GradientSource(gradients), options, place);
  after_step_->call(*this);
}

void Optimizer::check_count(const GradientAddresses& gradients) const {
  std::size_t count = 0;
  for (std::size_t g = 0; g < group_count(); ++g) {
    count += group(g).params.size();
  }
  if (gradients.grads.size() == count) return;
  throw Error(fmt::format(
      "{}: step expected {} gradient addresses, one per parameter in "
      "the order of parameters(), but got {}{}; pass null for a "
      "parameter without a gradient",
      name(), count, gradients.grads.size(), at_call()));
}

void Optimizer::check_usable(const char* call,
                             std::source_location place) const {
  if (!moved_from_ || group_count() > 0) return;
  throw Error(fmt::format("{}::{}: this optimizer was moved from, at {}",
                          name(), call, at(place)));
}

void Optimizer::make_step(const GradientSource& gradients,
                          const StepOptions& options,
                          std::source_location place) {
  check_usable("step", place);
  const CallPlace call(place);
  Recorder* const recorder = Recorder::current();
  ++kept_->steps;
  bool begun = false;
  try {
    refresh_batches(gradients);
    note_facts(place);
    if (recorder == nullptr) rehearse_batches(options);
    begun = true;
    for (JoinedBatch& joined : batches_->batches()) update(joined, options);
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

// Gradients of another dtype are converted, and scaled ones divided, as they are
// read; outside of a recording this takes a separate pass.
void Optimizer::update(JoinedBatch& joined, const StepOptions& options) const {
  Batch& batch = joined.batch;
  const TensorList params = batch.params;
  const PutBack own_params(batch.params);
  const PutBack own(batch.grads);
  const std::size_t first = joined.groups.front();
  const bool widened = widens(batch, group(first).opmath);
  const JoinedMasters joined_masters(batch, widened);
  if (!batch.masters.empty()) batch.params = batch.masters;
  const DType dtype = batch.params.impl()->dtype;
  if (batch.grads.impl()->dtype != dtype) {
    batch.grads = foreach_to(batch.grads, dtype);
  }
  if (options.grad_scale) {
    batch.grads = foreach_div(batch.grads, *options.grad_scale);
  }
  {
    std::optional<SkipScope> skipping;
    if (options.skip) skipping.emplace(*options.skip);
    const DecodedStates decoded(
        batch.states, widened ? specs_of(first) : std::span<const StateSpec>(),
        widened);
    update_group(first, joined.numbers.scalars(), batch);
    decoded.encode();
    joined_masters.split_into(params);
  }
  joined_masters.round_into(params);
}

// A batch is on one device, as one recording requires.
void Optimizer::rehearse_batches(const StepOptions& options) {
  for (JoinedBatch& joined : batches_->batches()) {
    const ListImpl* const grads = joined.batch.grads.impl().get();
    const bool moved = joined.rehearsed != grads->content_hash;
    rehearse([&] { update(joined, options); },
             [&](const ListImpl& list) {
               return joined.is_new || (moved && &list == grads);
             });
  }
  for (JoinedBatch& joined : batches_->batches()) {
    joined.rehearsed = joined.batch.grads.impl()->content_hash;
    joined.is_new = false;
  }
}

void Optimizer::gather_groups(std::vector<GroupToUpdate>& groups) {
  groups.clear();
  for (std::size_t g = 0; g < group_count(); ++g) {
    groups.push_back({&group(g), specs_of(g)});
  }
}

// Usually only the addresses of the gradients are new.
void Optimizer::refresh_batches(const GradientSource& gradients) {
  gather_groups(groups_);
  const std::span<const GroupToUpdate> groups = groups_;
  const auto try_update = [&](JoinedBatch& joined) {
    return rehearse([&] { update(joined, {}); },
                    [](const ListImpl&) { return false; });
  };
  const auto change =
      batches_->refresh(groups, kept_->states, gradients, try_update);
  if (change == RecentBatches::Change::nothing) return;
  if (change == RecentBatches::Change::params) {
    check_parameters(groups_of(*this));
  }
  batches_->rebuild(groups, kept_->states, gradients, try_update);
  if (change == RecentBatches::Change::params) kept_->states.drop_unreachable();
}

ParamStates Optimizer::states_in_use(std::size_t group_index,
                                     const Tensor& param) const {
  check_group(group_index, {});
  return fuse::states_in_use(specs_of(group_index), param, states(param));
}

void Optimizer::check_states(const std::string& place, std::size_t group_index,
                             const Tensor& param,
                             const ParamStates& states) const {
  check_group(group_index, {});
  fuse::check_states(place, param, specs_of(group_index), states);
}

std::vector<std::string> Optimizer::state_names(std::size_t group_index,
                                                const Tensor& param) const {
  check_group(group_index, {});
  return fuse::state_names(specs_of(group_index), param);
}

std::optional<DType> Optimizer::plain_state_dtype(
    const std::string& place, std::size_t group_index, const Tensor& param,
    const std::string& name) const {
  check_group(group_index, {});
  return fuse::plain_state_dtype(place, param, specs_of(group_index), name);
}

std::string Optimizer::name() const { return class_name(typeid(*this)); }

void Optimizer::use_master_weights(bool on) {
  for (std::size_t g = 0; g < group_count(); ++g) group(g).master_weights = on;
}

void Optimizer::use_split_masters(bool on) {
  for (std::size_t g = 0; g < group_count(); ++g) group(g).split_masters = on;
}

void Optimizer::use_stochastic_rounding(bool on, std::uint32_t seed) {
  for (std::size_t g = 0; g < group_count(); ++g) {
    group(g).stochastic_rounding = on;
    group(g).rounding_seed = seed;
  }
}

void Optimizer::use_opmath(bool on) {
  for (std::size_t g = 0; g < group_count(); ++g) group(g).opmath = on;
}

void Optimizer::use_8bit_states(bool on, std::int64_t min_8bit_size,
                                std::int64_t state_block_size) {
  const GroupStorage wanted = {.min_8bit_size = min_8bit_size,
                               .state_block_size = state_block_size};
  wanted.check_sizes(name() + "::use_8bit_states: ");
  for (std::size_t g = 0; g < group_count(); ++g) {
    group(g).states_8bit = on;
    group(g).min_8bit_size = min_8bit_size;
    group(g).state_block_size = state_block_size;
  }
}

OptimizerMemory Optimizer::memory() const {
  OptimizerMemory all;
  for (const Tensor& param : parameters()) {
    all.params += param.nbytes();
    for (const auto& [name, state] : states(param)) {
      const std::size_t elements =
          std::size_t(state.numel()) * size_of(state.dtype());
      all.states += elements;
      all.scales += state.nbytes() - elements;
    }
  }
  return all;
}

bool Optimizer::updates_in_float32() const {
  for (std::size_t g = 0; g < group_count(); ++g) {
    if (group(g).updates_in_float32()) return true;
  }
  return false;
}

std::vector<Tensor> Optimizer::master_params() const {
  std::vector<Tensor> all = parameters();
  for (Tensor& each : all) {
    const Tensor low = state(each, low_half_name);
    Tensor master = low.defined() ? foreach_join_halves(TensorList({each}),
                                                        TensorList({low}))[0]
                                  : state(each, master_name);
    if (master.defined()) each = std::move(master);
  }
  return all;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (std::size_t g = 0; g < group_count(); ++g) {
    const auto& params = group(g).params;
    all.insert(all.end(), params.begin(), params.end());
  }
  return all;
}

std::vector<TensorList> Optimizer::gradient_lists(std::source_location place) {
  check_usable("gradient_lists", place);
  const CallPlace call(place);
  refresh_batches({});
  std::vector<TensorList> lists;
  for (const JoinedBatch& joined : batches_->batches()) {
    lists.push_back(joined.batch.grads);
  }
  return lists;
}

void Optimizer::zero_grad(bool set_to_none, std::source_location place) const {
  const CallPlace call(place);
  if (set_to_none) {
    for (Tensor& param : parameters()) {
      if (param.defined()) param.set_grad(Tensor());
    }
    for (Tensor& whole : kept_->wholes) whole.set_grad(Tensor());
    return;
  }
  // List by list, as `step` does, so that both fuse. The groups are only read.
  std::vector<GroupToUpdate> groups;
  const_cast<Optimizer&>(*this).gather_groups(groups);
  for (const auto& params : batches_->params_by_list(groups)) {
    std::vector<Tensor> grads;
    std::set<const void*> known;  // several may share a gradient
    for (const Tensor& param : params) {
      if (!known.insert(param.grad().impl().get()).second) continue;
      grads.push_back(without_repeats(param.grad()));
    }
    foreach_zero_(TensorList(std::move(grads), "grads"));
  }
  for (const Tensor& whole : kept_->wholes) {
    if (whole.grad().defined()) whole.grad().fill_(0);
  }
}

}  // namespace fuse
