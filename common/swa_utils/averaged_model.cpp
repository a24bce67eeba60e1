#include "fusebook/swa_utils/averaged_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "fusebook/foreach/foreach.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"
#include "fusebook/tensor/kept_gradients.h"
#include "fusebook/trace/skip_scope.h"

namespace fuse {
namespace {

std::string kind_of(const Tensor& tensor) {
  return fmt::format("shape {}, {}, on {}", to_string(tensor.shape()),
                     name_of(tensor.dtype()), to_string(tensor.device()));
}

bool are_alike(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         a.device() == b.device();
}

void check_params(const std::vector<Tensor>& averaged,
                  const std::vector<Tensor>& params,
                  std::source_location place) {
  const std::string call = fmt::format("ParameterAverages::update at {}",
                                       at(CallPlace::or_else(place)));
  if (params.size() != averaged.size()) {
    throw Error(fmt::format("{}: expected {} parameters, but got {}", call,
                            averaged.size(), params.size()));
  }
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (!params[i].defined()) {
      throw Error(fmt::format("{}: parameter {} is undefined", call, i));
    }
    if (are_alike(params[i], averaged[i])) continue;
    throw Error(fmt::format("{}: parameter {} has {}, but its average has {}",
                            call, i, kind_of(params[i]), kind_of(averaged[i])));
  }
}

}  // namespace

MultiAvgFn get_swa_multi_avg_fn() {
  return [](const TensorList& averaged, const TensorList& current,
            const TensorList& num_averaged) {
    foreach_lerp_(averaged, current,
                  foreach_reciprocal(foreach_add(num_averaged, 1.0)));
  };
}

MultiAvgFn get_ema_multi_avg_fn(double decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw Error(fmt::format(
        "get_ema_multi_avg_fn: decay must be between 0 and 1, not {}",
        number_text(decay)));
  }
  return [decay](const TensorList& averaged, const TensorList& current,
                 const TensorList&) {
    foreach_lerp_(averaged, current, 1 - decay);
  };
}

ParameterAverages::ParameterAverages(std::vector<Tensor> averaged,
                                     MultiAvgFn multi_avg_fn)
    : averaged_(std::move(averaged)), multi_avg_fn_(std::move(multi_avg_fn)) {
  if (!multi_avg_fn_) {
    throw Error("ParameterAverages: the averaging function is empty");
  }
  for (std::size_t i = 0; i < averaged_.size(); ++i) {
    if (averaged_[i].defined()) continue;
    throw Error(
        fmt::format("ParameterAverages::ParameterAverages: average {} is "
                    "undefined",
                    i));
  }
  counts_ = scalars_beside(averaged_);
}

// Lists last until an optimizer makes others, or the one whose lists they are is
// gone: another may have older ones.
bool ParameterAverages::has_parts(const std::vector<Tensor>& params) const {
  if (params.size() != averaged_.size()) return false;
  if (params.size() != params_.size()) return false;
  if (times_kept_ != times_kept()) return false;
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.impl() == b.impl();
  };
  if (!std::equal(params.begin(), params.end(), params_.begin(), same)) {
    return false;
  }
  return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return kept_params(part.current.tensors().front()) == part.kept;
  });
}

ParameterAverages::Part ParameterAverages::part_of(
    const TensorList& current, const std::vector<std::size_t>& places) const {
  std::vector<Tensor> averaged;
  std::vector<Tensor> counts;
  for (const std::size_t i : places) {
    averaged.push_back(averaged_[i]);
    counts.push_back(counts_[i]);
  }
  return {TensorList(std::move(averaged), "averages"), current,
          TensorList::per_tensor(std::move(counts), "n_averaged"),
          kept_params(current.tensors().front())};
}

void ParameterAverages::find_parts(const std::vector<Tensor>& params) {
  std::unordered_map<const TensorImpl*, std::size_t> place_of;
  for (std::size_t i = 0; i < params.size(); ++i) {
    place_of[params[i].impl().get()] = i;
  }
  parts_.clear();
  params_ = params;
  times_kept_ = times_kept();
  for (const TensorList& current : lists_of_params(params)) {
    std::vector<std::size_t> places;
    for (const Tensor& each : current) {
      places.push_back(place_of.at(each.impl().get()));
    }
    parts_.push_back(part_of(current, places));
  }
}

void ParameterAverages::update(const Part& part,
                               std::source_location place) const {
  const TensorList is_first = foreach_eq(part.counts, 0.0, place);
  {
    const SkipScope later(is_first);
    multi_avg_fn_(part.averaged, part.current, part.counts);
  }
  foreach_copy_(part.averaged,
                foreach_where(is_first, part.current, part.averaged, place),
                place);
  foreach_add_(part.counts, 1.0, place);
}

void ParameterAverages::update(const std::vector<Tensor>& params,
                               const AverageOptions& options,
                               std::source_location place) {
  const CallPlace call(place);
  if (!has_parts(params)) {
    check_params(averaged_, params, place);
    find_parts(params);
  }
  std::optional<SkipScope> skipping;
  if (options.skip) skipping.emplace(*options.skip);
  for (const Part& part : parts_) update(part, place);
}

std::int64_t ParameterAverages::n_averaged() const {
  return counts_.empty() ? 0 : std::int64_t(counts_.front().item());
}

void ParameterAverages::set_n_averaged(std::int64_t count) {
  for (Tensor& each : counts_) each.fill_(double(count));
}

}  // namespace fuse
