#include "fusebook/optim_base/group_batches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "fusebook/optim_base/like_groups.h"
#include "fusebook/tensor/borrowed_list.h"
#include "fusebook/tensor/move_tensors.h"

namespace fuse {
namespace {

// All parameters, group by group.
std::vector<Tensor> params_of(std::span<const GroupToUpdate> groups) {
  std::vector<Tensor> all;
  for (const GroupToUpdate& each : groups) {
    const auto& own = each.group->params;
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

// Tensors of one list have one dtype and are on one device, their states are all
// in 8 bits, or none is, and where matrices have states of their own all are
// matrices, or none is. Returns, for each list, the indices of its parameters
// among all parameters.
std::vector<std::vector<std::size_t>> lists_of(
    std::span<const GroupToUpdate> groups,
    const std::vector<std::vector<std::size_t>>& sets,
    const std::vector<Tensor>& params, const GradientSource& gradients) {
  std::vector<std::size_t> first = {0};
  for (const GroupToUpdate& each : groups) {
    first.push_back(first.back() + each.group->params.size());
  }
  std::vector<std::vector<std::size_t>> lists;
  for (const auto& set : sets) {
    using Key = std::tuple<std::uint8_t, DType, DType, bool, bool>;
    std::map<Key, std::vector<std::size_t>> alike;
    for (const std::size_t g : set) {
      for (std::size_t i = first[g]; i < first[g + 1]; ++i) {
        if (!gradients.has(params, i)) continue;
        if (groups[g].group->foreach ()) {
          const std::uint8_t memory = memory_code(params[i].device());
          const DType dtype = gradients.dtype(params, i);
          const bool coded = has_8bit_states(groups[g].specs, params[i]);
          const bool factored = is_factored(groups[g].specs, params[i]);
          alike[{memory, params[i].dtype(), dtype, coded, factored}].push_back(
              i);
        } else {
          lists.push_back({i});
        }
      }
    }
    for (auto& [key, places] : alike) lists.push_back(std::move(places));
  }
  return lists;
}

// A set for each group.
std::vector<std::vector<std::size_t>> one_each(std::size_t groups) {
  std::vector<std::vector<std::size_t>> sets(groups);
  for (std::size_t g = 0; g < groups; ++g) sets[g] = {g};
  return sets;
}

}  // namespace

// ---- from step to step ------------------------------------------------------

// There may be thousands of groups, so one pass over them must do.
GroupBatches::Change GroupBatches::compare(Groups groups) const {
  if (groups.size() != known_.size()) return Change::params;
  Change change = Change::nothing;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!has_params(known_[g], *groups[g].group)) return Change::params;
    if (!has_options(groups, g)) change = Change::batches;
  }
  return change;
}

bool GroupBatches::has_params(const Known& known,
                              const ParamGroup& group) const {
  if (group.params.size() != known.params) return false;
  const Tensor* before = params_.data() + known.first_param;
  return std::all_of(
      group.params.begin(), group.params.end(),
      [&](const Tensor& now) { return now.impl() == (before++)->impl(); });
}

// Options such as amsgrad may be switched between two steps. A group at a new
// address counts as another group: nothing tracks its numbers yet.
bool GroupBatches::has_options(Groups groups, std::size_t g) const {
  const Known& known = known_[g];
  const ParamGroup& own = *groups[g].group;
  if (known.group != &own || known.foreach != own.foreach () ||
      known.opmath != own.opmath) {
    return false;
  }
  if (!same_specs(known.specs, groups[g].specs)) return false;
  return known.like == g || groups[known.like].group->is_like(own);
}

bool GroupBatches::take_numbers(Groups groups, const Try& try_update) {
  name_single_groups(groups);
  for (JoinedBatch& batch : batches_) {
    if (batch.groups.size() == 1) continue;
    const auto change = batch.numbers.take();
    if (change == JoinedNumbers::Change::kinds) return false;
    if (change == JoinedNumbers::Change::none) continue;
    if (find_split(batch, try_update)) return false;
  }
  if (changes_ != nullptr) changes_->clear();
  return true;
}

bool GroupBatches::is_of(const GradientSource& gradients) const {
  if (!source_.like(gradients)) return false;
  auto next = without_.begin();
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const bool without = next != without_.end() && *next == i;
    if (without) ++next;
    if (gradients.has(params_, i) == without) return false;
  }
  return true;
}

// False if other parameters have a gradient now, or gradients of another kind.
bool GroupBatches::follow(const GradientSource& gradients) {
  for (const std::size_t i : without_) {
    if (gradients.has(params_, i)) return false;
  }
  return std::all_of(batches_.begin(), batches_.end(), [&](JoinedBatch& each) {
    const fuse::Change change = follow(each, gradients);
    if (change == fuse::Change::other) return false;
    return change == fuse::Change::none || !joins_ ||
           !memory_.touches(each.batch.grads);
  });
}

fuse::Change GroupBatches::follow(JoinedBatch& each,
                                  const GradientSource& gradients) {
  TensorList& grads = each.batch.grads;
  if (!gradients.given()) {
    const fuse::Change change = follow_gradients(grads);
    const std::uint64_t now = grads.impl()->content_hash;
    const bool moved = std::exchange(each.followed, now) != now;
    return change == fuse::Change::none && moved ? fuse::Change::moved : change;
  }
  const auto addresses = gather(each.params, gradients);
  void* const none = nullptr;
  if (std::find(addresses.begin(), addresses.end(), none) != addresses.end()) {
    return fuse::Change::other;
  }
  const std::uint64_t before = grads.impl()->content_hash;
  follow_addresses(grads, addresses);
  return grads.impl()->content_hash == before ? fuse::Change::none
                                              : fuse::Change::moved;
}

std::span<void* const> GroupBatches::gather(std::span<const std::size_t> params,
                                            const GradientSource& gradients) {
  addresses_.resize(params.size());
  std::transform(params.begin(), params.end(), addresses_.begin(),
                 [&](std::size_t i) { return gradients.address(i); });
  return addresses_;
}

GroupBatches::Change GroupBatches::refresh(Groups groups,
                                           const StateStore& store,
                                           const GradientSource& gradients,
                                           const Try& try_update) {
  const Change change = compare(groups);
  if (change != Change::nothing) return change;
  const bool same = moves_ == moves_so_far() && source_.like(gradients) &&
                    version_ == store.version() && follow(gradients) &&
                    take_numbers(groups, try_update);
  return same ? Change::nothing : Change::batches;
}

// ---- when something has changed ---------------------------------------------

void GroupBatches::rebuild(Groups groups, StateStore& store,
                           const GradientSource& gradients,
                           const Try& try_update) {
  version_ = unfinished;  // until everything is built
  moves_ = moves_so_far();
  remember(groups, gradients);
  Sets sets = like_groups(groups);
  for (const auto& set : sets) create_states(groups, set, store, gradients);
  make_batches(groups, sets, store, gradients);
  if (joins_ && !memory_.are_apart(batches_)) {
    sets = one_each(groups.size());
    make_batches(groups, sets, store, gradients);
  }
  for (const auto& set : sets) {
    for (const std::size_t g : set) known_[g].like = set.front();
  }
  if (joins_) split_batches(groups, store, gradients, try_update);
  for (const JoinedBatch& batch : batches_) {
    for (const std::size_t g : batch.groups) {
      known_[g].joined = batch.groups.size() > 1;
    }
  }
  single_.clear();
  for (std::size_t g = 0; g < known_.size(); ++g) {
    if (!known_[g].joined) single_.push_back(g);
  }
  name_single_groups(groups);
  if (changes_ != nullptr) changes_->clear();
  version_ = store.version();
}

void GroupBatches::name_single_groups(Groups groups) const {
  for (const std::size_t g : single_) groups[g].group->name_numbers(int(g));
}

void GroupBatches::remember(Groups groups, const GradientSource& gradients) {
  params_ = params_of(groups);
  source_ = gradients.part(0, 0);
  without_.clear();
  known_.clear();
  std::size_t next = 0;
  for (const GroupToUpdate& each : groups) {
    Known& known = known_.emplace_back();
    known.group = each.group;
    known.first_param = next;
    known.params = each.group->params.size();
    known.specs = each.specs;
    known.foreach = each.group->foreach ();
    known.opmath = each.group->opmath;
    for (std::size_t i = 0; i < each.group->params.size(); ++i, ++next) {
      if (gradients.has(params_, next)) {
        ++known.updated;
      } else {
        without_.push_back(next);
      }
    }
  }
}

// States that start from a hyper-parameter are made group by group.
void GroupBatches::create_states(Groups groups,
                                 const std::vector<std::size_t>& set,
                                 StateStore& store,
                                 const GradientSource& gradients) {
  const auto& specs = groups[set.front()].specs;
  const bool by_group = std::any_of(
      specs.begin(), specs.end(),
      [](const StateSpec& spec) { return !spec.initial_from.empty(); });
  std::vector<Tensor> params;
  std::vector<std::size_t> numbers;
  const auto create = [&](const GroupToUpdate& like) {
    store.create(params, numbers, with_initials(like.specs, *like.group));
    params.clear();
    numbers.clear();
  };
  for (const std::size_t g : set) {
    const std::size_t begin = known_[g].first_param;
    for (std::size_t i = 0; i < groups[g].group->params.size(); ++i) {
      if (!gradients.has(params_, begin + i)) continue;
      params.push_back(params_[begin + i]);
      numbers.push_back(begin + i);
    }
    if (by_group) create(groups[g]);
  }
  if (!by_group) create(groups[set.front()]);
}

// Matches the batches as long as nothing has changed since they were made.
bool GroupBatches::serves(Groups groups) const {
  return version_ != unfinished && compare(groups) == Change::nothing &&
         is_of({});
}

std::vector<std::vector<Tensor>> GroupBatches::params_by_list(
    Groups groups) const {
  if (!serves(groups)) return new_lists(groups);
  std::vector<std::vector<Tensor>> all;
  for (const JoinedBatch& each : batches_) {
    all.push_back(each.batch.params.tensors());
  }
  return all;
}

std::vector<std::vector<Tensor>> GroupBatches::new_lists(Groups groups) {
  const GradientSource gradients;
  const std::vector<Tensor> params = params_of(groups);
  std::vector<std::vector<Tensor>> all;
  for (const auto& places :
       lists_of(groups, like_groups(groups), params, gradients)) {
    all.emplace_back();
    for (const std::size_t i : places) all.back().push_back(params[i]);
  }
  return all;
}

void GroupBatches::make_batches(Groups groups, const Sets& sets,
                                const StateStore& store,
                                const GradientSource& gradients) {
  batches_.clear();
  changes_ = std::make_shared<NumberChanges>(
      groups.empty() ? 0 : groups.size() * numbers_in(*groups[0].group));
  for (const auto& places : lists_of(groups, sets, params_, gradients)) {
    std::vector<Member> members;
    for (const std::size_t i : places) members.push_back({group_of(i), i});
    batches_.push_back(join(groups, members, store, gradients));
  }
  joins_ = std::any_of(
      batches_.begin(), batches_.end(),
      [](const JoinedBatch& batch) { return batch.groups.size() > 1; });
}

std::size_t GroupBatches::group_of(std::size_t param) const {
  const auto behind = std::upper_bound(
      known_.begin(), known_.end(), param,
      [](std::size_t i, const Known& known) { return i < known.first_param; });
  return std::size_t(behind - known_.begin()) - 1;
}

JoinedBatch GroupBatches::join(Groups groups,
                               const std::vector<Member>& members,
                               const StateStore& store,
                               const GradientSource& gradients) {
  JoinedBatch joined;
  auto places = std::make_shared<TensorGroups>();
  std::vector<Tensor> params;
  for (const auto& [g, param] : members) {
    if (joined.groups.empty() || joined.groups.back() != g) {
      joined.groups.push_back(g);
      places->numbers.push_back(int(g));
    }
    places->of_tensor.push_back(std::int32_t(joined.groups.size()) - 1);
    joined.params.push_back(param);
    params.push_back(params_[param]);
  }
  std::optional<GivenGradients> given;
  if (gradients.given()) {
    given = {gather(joined.params, gradients),
             gradients.dtype(params_, joined.params.front())};
  }
  joined.batch = make_batch(std::move(params),
                            groups[joined.groups.front()].specs, store, given);
  if (joined.groups.size() > 1) {
    joined.numbers = JoinedNumbers(members_of(groups, joined.groups),
                                   std::move(places), changes_);
    joined.numbers.take();
  }
  return joined;
}

std::vector<ParamGroup*> GroupBatches::members_of(
    Groups groups, const std::vector<std::size_t>& wanted) {
  std::vector<ParamGroup*> members;
  for (const std::size_t g : wanted) members.push_back(groups[g].group);
  return members;
}

}  // namespace fuse
