#include "fusebook/distributed/sharded_optimizer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "fusebook/distributed/chunk_norm.h"
#include "fusebook/distributed/element_by_element.h"
#include "fusebook/distributed/facts.h"
#include "fusebook/distributed/gradient_sums.h"
#include "fusebook/distributed/machine_facts.h"
#include "fusebook/distributed/message_buffer.h"
#include "fusebook/distributed/parcel.h"
#include "fusebook/distributed/share_states.h"
#include "fusebook/foreach/clip_grad.h"
#include "fusebook/prelude/sums.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/move_tensors.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

// With states in 8 bits a part would have other states than the whole.
Shareable shareable(const Tensor& param, const ParamGroup& group,
                    bool may_cut) {
  const bool cut = may_cut && param.is_contiguous() && !group.states_8bit;
  return {param.numel(), cut ? sum_chunk_size : 0};
}

std::vector<std::int64_t> sizes_of(const std::vector<Tensor>& params) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& each : params) sizes.push_back(each.numel());
  return sizes;
}

Scalar number(double value) { return Scalar(tensor(value, DType::float64)); }

}  // namespace

// What needs to be made again when the shares are others.
struct ShardedOptimizer::Parts {
  Parts(ShardedOptimizer& all, const CompileOptions& options)
      : own(all.own_),
        optimizer(all.optimizer_),
        sums(all.ranks_, all.shares_, all.params_, all.own_, options),
        norm(all.ranks_, all.shares_, sizes_of(all.params_), options),
        step(compile(std::function<void()>([this] { record(); }), options)),
        sent(std::size_t(all.ranks_.size())) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      place_of[own[i].impl().get()] = i;
    }
  }

  // The last gradients are added, then all are clipped and used, in one launch.
  void record() {
    for (const TensorList& grads : optimizer.gradient_lists()) {
      std::vector<std::size_t> places;
      for (const Tensor& param : grads.impl()->owners->tensors) {
        places.push_back(place_of.at(param.impl().get()));
      }
      sums.open().list(grads, places).add_up(factors);
    }
    if (max_norm) clip_grads_with_norm_(own, *max_norm, total);
    optimizer.step({.skip = skip});
  }

  const std::vector<Tensor>& own;
  std::unordered_map<const TensorImpl*, std::size_t> place_of;  // in `own`
  Optimizer& optimizer;
  GradientSums sums;
  ChunkNorm norm;
  // What the compiled step reads.
  SumFactors factors;
  std::optional<Scalar> max_norm;
  Scalar total = 0.0;
  std::optional<Scalar> skip;
  Compiled<std::function<void()>> step;
  std::vector<MessageBuffer> sent;  // copies of parameters, of each rank
};

ShardedOptimizer::ShardedOptimizer(Ranks& ranks, Optimizer& optimizer,
                                   const CompileOptions& options,
                                   std::source_location place)
    : ranks_(ranks), optimizer_(optimizer) {
  const RankCall call = {"ShardedOptimizer", place, {}};
  RecordedStep recorded;
  ranks_.together(call, [&] {
    take_params();
    recorder_ = std::make_unique<StepRecorder>(optimizer_);
    recorded = recorder_->record(true);
  });
  std::vector<std::string> facts = machine_facts();
  for (std::string& each : this->facts()) facts.push_back(std::move(each));
  for (std::string& each : facts_of_params(params_, group_of_)) {
    facts.push_back(std::move(each));
  }
  facts.push_back(fact_of(recorded));
  ranks_.agree({call.name, place, std::move(facts)});
  std::vector<Shareable> sizes;
  for (std::size_t p = 0; p < params_.size(); ++p) {
    sizes.push_back(shareable(params_[p], optimizer_.group(group_of_[p]),
                              recorded.is_by_element));
  }
  shares_ = make_shares(sizes, ranks_.size());
  ranks_.together(call, [&] {
    share_out();
    parts_ = std::make_unique<Parts>(*this, options);
  });
  ranks_.or_end(call, [&] { take_first_params(); });
  guard_ = guard(place);
}

ShardedOptimizer::~ShardedOptimizer() {
  if (!guard_) return;
  guard_->remove();
  optimizer_.set_wholes({});
}

// It knows this rank's shares alone, and no gradients.
RemovableHandle ShardedOptimizer::guard(std::source_location place) {
  return optimizer_.register_step_pre_hook([this, place](Optimizer& own) {
    if (is_stepping_) return;
    throw Error(fmt::format(
        "{} is shared by ranks since {}: call step of the ShardedOptimizer "
        "instead of its own",
        own.name(), at(place)));
  });
}

void ShardedOptimizer::take_params() {
  for (std::size_t g = 0; g < optimizer_.group_count(); ++g) {
    const ParamGroup& group = optimizer_.group(g);
    names_.push_back(group.param_names);
    for (const Tensor& each : group.params) {
      check_defined(each, "a parameter");
      params_.push_back(each);
      group_of_.push_back(g);
    }
  }
  check_apart(params_, "ShardedOptimizer");
}

void ShardedOptimizer::share_out() {
  std::vector<std::vector<Tensor>> groups(optimizer_.group_count());
  std::vector<std::vector<std::string>> names(groups.size());
  std::vector<std::size_t> before(groups.size());  // parameters of the group
  std::size_t next = 0;
  for (std::size_t p = 0; p < params_.size(); ++p) {
    const std::size_t g = group_of_[p];
    const std::size_t in_group = before[g]++;
    for (; next < shares_.size() && shares_[next].param == p; ++next) {
      if (shares_[next].owner != ranks_.rank()) continue;
      own_.push_back(view_of(shares_[next], params_[p]));
      groups[g].push_back(own_.back());
      if (!names_[g].empty()) names[g].push_back(names_[g][in_group]);
      share_states(optimizer_, params_[p], shares_[next], own_.back());
      optimizer_.set_part(own_.back(), {p, shares_[next].begin});
    }
    optimizer_.restore_states(params_[p], {});
  }
  optimizer_.set_wholes(params_);
  moves_seen_ = moves_so_far();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    optimizer_.group(g).params = std::move(groups[g]);
    optimizer_.group(g).param_names = std::move(names[g]);
  }
}

// All ranks begin with the parameters of rank 0.
void ShardedOptimizer::take_first_params() {
  for (Tensor& each : params_) {
    std::vector<std::byte> bytes(each.nbytes());
    Tensor packed = from_blob(bytes.data(), each.shape(), each.dtype());
    packed.copy_(each);
    ranks_.send_from_first(bytes, &RankTraffic::agreement);
    each.copy_(packed);
  }
}

std::vector<std::string> ShardedOptimizer::facts() const {
  return facts_of_optimizer(optimizer_);
}

void ShardedOptimizer::check_usable(const char* call,
                                    std::source_location place) const {
  if (Recorder::current() != nullptr) {
    throw Error(fmt::format(
        "ShardedOptimizer::{} at {} cannot be part of a compiled function; it "
        "compiles its step itself",
        call, at(place)));
  }
  if (is_broken_) {
    throw Error(fmt::format(
        "ShardedOptimizer::{} at {}: an earlier step failed on some "
        "rank; make parameters and optimizer anew",
        call, at(place)));
  }
}

void ShardedOptimizer::check_params(const char* call,
                                    std::source_location place) const {
  const std::vector<Tensor> now = optimizer_.parameters();
  const bool are_those = std::equal(
      now.begin(), now.end(), own_.begin(), own_.end(),
      [](const Tensor& a, const Tensor& b) { return a.impl() == b.impl(); });
  if (are_those) return follow_params();
  throw Error(
      fmt::format("ShardedOptimizer::{} at {}: the parameters of {} are no "
                  "longer those that "
                  "ranks share; add parameters before it is shared",
                  call, at(place), optimizer_.name()));
}

// Views stay where they were when a parameter moves.
void ShardedOptimizer::follow_params() const {
  if (moves_seen_ == moves_so_far()) return;
  move_views(own_, shares_, ranks_.rank(), params_);
  moves_seen_ = moves_so_far();
}

// True if some rank had gradients.
bool ShardedOptimizer::round(bool contributes, const RankCall& call) {
  const auto adds =
      ranks_.agree({call.name, call.place, {}, "gradients"}, contributes);
  const auto first_without = std::find(adds.begin(), adds.end(), 0U);
  const auto later = std::find(first_without, adds.end(), 1U);
  if (later != adds.end()) {
    const auto places = ranks_.places(call);
    const auto early = std::size_t(first_without - adds.begin());
    const auto late = std::size_t(later - adds.begin());
    throw RanksDisagree(fmt::format(
        "rank {} is in {}, but rank {} still is in {}; gradient m of a step "
        "belongs to rank m % {}",
        early, places[early], late, places[late], ranks_.size()));
  }
  if (first_without == adds.begin()) return false;
  parts_->sums.add(contributes, call);
  return true;
}

void ShardedOptimizer::add_gradients(std::source_location place) {
  check_usable("add_gradients", place);
  check_params("add_gradients", place);
  round(true, {"add_gradients", place, {}});
}

void ShardedOptimizer::send_gradients_as(std::optional<DType> dtype,
                                         std::source_location place) {
  check_usable("send_gradients_as", place);
  const auto& added = parts_->sums.dtypes();
  const bool has_begun =
      std::any_of(added.begin(), added.end(),
                  [](const auto& one) { return one.has_value(); });
  if (has_begun) {
    throw Error(
        fmt::format("ShardedOptimizer::send_gradients_as at {}: gradients of "
                    "this step have been sent; call it before them",
                    at(place)));
  }
  if (dtype && !is_half(*dtype)) {
    throw Error(fmt::format(
        "ShardedOptimizer::send_gradients_as at {}: {} is not a dtype of 16 "
        "bits; take bfloat16 or float16",
        at(place), name_of(*dtype)));
  }
  ranks_.agree({"send_gradients_as",
                place,
                {fmt::format("gradients sent as {}",
                             dtype ? name_of(*dtype) : "they are")}});
  parts_->sums.send_as(dtype);
}

Counters ShardedOptimizer::counters() const {
  Counters all = parts_->step.counters();
  all += parts_->sums.counters();
  all += parts_->norm.counters();
  return all;
}

// Where something must be known of all gradients, their sums are made before the
// step; else the step makes them.
void ShardedOptimizer::prepare_gradients(const ShardedStep& options,
                                         const RankCall& call,
                                         ShardedResult& result) {
  parts_->factors = {};
  if (scales(options)) {
    parts_->factors.multiply_by = number(1.0 / options.scaler->get_scale());
  }
  if (options.divide_by) parts_->factors.divide_by = number(*options.divide_by);
  const WantedOfSums wanted = {options.max_norm.has_value(),
                               options.skip_nonfinite || scales(options)};
  bool finite = true;
  ranks_.or_end(call, [&] {
    parts_->sums.hand_over();
    if (!wanted.norm && !wanted.finite) return;
    parts_->norm.make(parts_->sums.open(), parts_->factors, wanted);
    parts_->sums.open().terms.clear();
    parts_->factors = {};
    finite = parts_->norm.is_finite();
  });
  if (wanted.finite) {
    const auto notes = ranks_.agree({"finite", call.place, {}}, finite);
    result.skipped = std::find(notes.begin(), notes.end(), 0U) != notes.end();
  }
  if (!wanted.norm) return;
  ranks_.or_end(
      call, [&] { result.norm = parts_->norm.norm(parts_->sums.dtypes()); });
}

// What the update does may depend on more than options, so it is recorded anew.
void ShardedOptimizer::agree_on_step(RankCall& call) {
  try {
    ranks_.agree_after(call, [&] {
      for (std::string& each : facts()) call.facts.push_back(std::move(each));
      call.facts.push_back(fact_of(recorder_->record()));
    });
  } catch (const RanksDisagree&) {
    recorder_->forget();  // on all of them
    throw;
  }
}

ShardedResult ShardedOptimizer::step(const ShardedStep& options,
                                     std::source_location place) {
  check_usable("step", place);
  check_params("step", place);
  RankCall call = {"step", place, facts_of_step(options)};
  while (round(false, call)) {
  }
  agree_on_step(call);
  const auto& dtypes = parts_->sums.dtypes();
  if (std::none_of(dtypes.begin(), dtypes.end(),
                   [](const auto& dtype) { return dtype.has_value(); })) {
    throw RanksDisagree(ranks_.places(call)[0] +
                        ": no rank has added gradients; call add_gradients "
                        "after each backward");
  }
  ShardedResult result;
  Tensor found_inf = tensor(0.0, DType::float64);
  if (scales(options)) {
    ranks_.together(call, [&] {
      options.scaler->note_step(optimizer_, Scalar(found_inf),
                                params_.front().device(), place);
    });
  }
  prepare_gradients(options, call, result);
  found_inf.fill_(result.skipped ? 1 : 0);
  parts_->max_norm.reset();
  if (options.max_norm) parts_->max_norm = Scalar(*options.max_norm, place);
  parts_->total = number(result.norm.value_or(0));
  parts_->skip.reset();
  if (options.skip_nonfinite || scales(options)) {
    parts_->skip = Scalar(found_inf);
  }
  is_broken_ = true;
  is_stepping_ = true;
  ranks_.together(call, [&] {
    const CallPlace from(place);
    parts_->step();
  });
  is_stepping_ = false;
  send_params(call);
  is_broken_ = false;
  parts_->sums.clear();
  return result;
}

// From their memory to where they are on the other ranks.
void ShardedOptimizer::send_params(const RankCall& call) {
  ranks_.or_end(call, [&] {
    const auto& dtypes = parts_->sums.dtypes();
    const auto me = std::size_t(ranks_.rank());
    std::vector<std::vector<Tensor>> views(std::size_t(ranks_.size()));
    for (const Share& each : shares_) {
      if (!dtypes[each.param]) continue;  // has not moved
      views[std::size_t(each.owner)].push_back(
          view_of(each, params_[each.param]));
    }
    std::vector<Parcel> parcels;
    std::vector<std::vector<std::span<std::byte>>> in;
    for (std::size_t r = 0; r < views.size(); ++r) {
      in.push_back(parcels.emplace_back(views[r], parts_->sent[r]).stretches());
    }
    if (ranks_.size() > 1) parcels[me].pack();
    const std::vector<std::vector<std::span<const std::byte>>> out(
        views.size(), {in[me].begin(), in[me].end()});
    ranks_.exchange_stretches(out, in, &RankTraffic::parameters);
    for (std::size_t r = 0; r < views.size(); ++r) {
      if (r != me) parcels[r].unpack();
    }
  });
}

}  // namespace fuse
