#include "fusebook/amp/grad_scaler.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "fusebook/foreach/foreach.h"
#include "fusebook/foreach/reductions.h"
#include "fusebook/nn/functional.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/support/source_place.h"

namespace fuse {
namespace {

// The smallest number that float32 rounds to infinity.
constexpr double infinite_in_float32 = 0x1.ffffffp127;

void check(const GradScalerOptions& o) {
  if (!(o.growth_factor > 1)) {
    throw Error(
        fmt::format("GradScaler: growth_factor must be greater than 1, not {}",
                    number_text(o.growth_factor)));
  }
  if (!(o.backoff_factor < 1)) {
    throw Error(
        fmt::format("GradScaler: backoff_factor must be less than 1, not {}",
                    number_text(o.backoff_factor)));
  }
  if (o.growth_interval < 1) {
    throw Error(
        fmt::format("GradScaler: growth_interval must be at least 1, not {}",
                    o.growth_interval));
  }
}

[[noreturn]] void refuse(const char* call, const Optimizer& optimizer,
                         const char* why, std::source_location place) {
  throw Error(fmt::format("GradScaler::{} for {} at {}: {}", call,
                          optimizer.name(), at(CallPlace::or_else(place)),
                          why));
}

bool has_16_bits(const TensorList& list) { return is_half(list.impl()->dtype); }

Scalar negated(const Scalar& a, std::source_location place) {
  const std::array operands = {&a};
  return scalar_apply(OpCode::logical_not, operands, place);
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options) {
  check(options_);
}

// Where gradients are first looked at.
void GradScaler::place_numbers(const Device& device) {
  if (!scale_.defined()) {
    scale_ = full({}, options_.init_scale, DType::float32, device);
    tracker_ = full({}, first_tracker_, DType::float64, device);
  }
  if (scale_.device() == device) return;
  throw Error(fmt::format(
      "GradScaler: the scale is on {}, but gradients are on {}; use a scaler "
      "for each device",
      to_string(scale_.device()), to_string(device)));
}

Tensor GradScaler::scale(const Tensor& loss) {
  check_defined(loss, "the loss");
  if (!options_.enabled) return loss;
  // Gradients may be elsewhere: so the loss, which often is a number of the
  // host, does not say where the scale will be.
  const Device device = loss.device();
  const Tensor now =
      scale_.defined() ? scale_.to(device)
                       : full({}, options_.init_scale, DType::float32, device);
  return mul(loss, now.to(loss.dtype()));
}

const GradScaler::Progress* GradScaler::find(const Optimizer& optimizer) const {
  const auto found = std::find_if(
      progress_->begin(), progress_->end(),
      [&](const auto& each) { return each.optimizer == &optimizer; });
  return found == progress_->end() ? nullptr : &*found;
}

// Finds out whether gradients are finite, and takes the scale out of them, unless
// a step does that where they have become float32.
const GradScaler::Progress& GradScaler::look_at(Optimizer& optimizer,
                                                bool may_keep_scaled,
                                                std::source_location place) {
  if (optimizer.has_parts()) {
    refuse(may_keep_scaled ? "step" : "unscale_", optimizer,
           "it is shared by ranks; give the scaler to the step of the "
           "ShardedOptimizer",
           place);
  }
  const std::vector<TensorList> grads = optimizer.gradient_lists(place);
  if (grads.empty()) {
    return progress_.change().emplace_back(
        Progress{&optimizer, Stage::unscaled, {}});
  }
  place_numbers(grads.front().impl()->device);
  Scalar finite = all_finite(grads.front(), place);
  for (std::size_t k = 1; k < grads.size(); ++k) {
    finite = finite * all_finite(grads[k], place);
  }
  const bool scaled = may_keep_scaled && optimizer.updates_in_float32() &&
                      std::any_of(grads.begin(), grads.end(), has_16_bits);
  if (!scaled) {
    const Scalar inverse = Scalar(1.0, place) / Scalar(scale_, place);
    for (const TensorList& list : grads) foreach_mul_(list, inverse, place);
  }
  return progress_.change().emplace_back(
      Progress{&optimizer, Stage::unscaled, negated(finite, place), scaled});
}

void GradScaler::unscale_(Optimizer& optimizer, std::source_location place) {
  if (!options_.enabled) return;
  if (const Progress* const known = find(optimizer)) {
    refuse("unscale_", optimizer,
           known->stage == Stage::unscaled
               ? "it was already called since the last update()"
               : "it comes before step()",
           place);
  }
  look_at(optimizer, false, place);
}

void GradScaler::step(Optimizer& optimizer, std::source_location place) {
  if (!options_.enabled) {
    optimizer.step(place);
    return;
  }
  const Progress* const known = find(optimizer);
  const Progress* const own =
      known != nullptr ? known : &look_at(optimizer, true, place);
  if (own->stage == Stage::stepped) {
    refuse("step", optimizer, "it was already called since the last update()",
           place);
  }
  if (!own->found_inf) {
    if (known != nullptr) {
      refuse("step", optimizer,
             "no parameter had a gradient when unscale_() was called", place);
    }
    progress_.change().pop_back();
    refuse("step", optimizer, "no parameter has a gradient", place);
  }
  StepOptions given = {.skip = own->found_inf};
  if (own->scaled) given.grad_scale = Scalar(scale_, place);
  optimizer.step(given, place);
  const auto index = std::size_t(own - progress_->data());
  progress_.change()[index].stage = Stage::stepped;
}

void GradScaler::note_step(const Optimizer& optimizer, const Scalar& found_inf,
                           const Device& device, std::source_location place) {
  if (!options_.enabled) return;
  if (const Progress* const known = find(optimizer)) {
    refuse("note_step", optimizer,
           known->stage == Stage::unscaled
               ? "unscale_() was already called since the last update()"
               : "a step was already made since the last update()",
           place);
  }
  place_numbers(device);
  progress_.change().push_back({&optimizer, Stage::stepped, found_inf});
}

void GradScaler::update(std::source_location place) {
  if (!options_.enabled) return;
  std::optional<Scalar> any;
  for (const Progress& each : *progress_) {
    if (!each.found_inf) continue;
    any = any ? *any + *each.found_inf : *each.found_inf;
  }
  if (!any) {
    throw Error(fmt::format(
        "GradScaler::update at {}: no gradient was looked at since the last "
        "update(); call step() or unscale_() first",
        at(CallPlace::or_else(place))));
  }
  move_scale(*any, place);
  progress_.change().clear();
}

// The kernel decides; the host does not know.
void GradScaler::move_scale(const Scalar& found_inf,
                            std::source_location place) {
  const TensorList scale = TensorList::per_tensor({scale_}, "scale");
  const TensorList tracker =
      TensorList::per_tensor({tracker_}, "growth_tracker");
  const auto number = [&](double value) { return Scalar(value, place); };
  const TensorList grown = foreach_add(tracker, number(1), place);
  const TensorList due =
      foreach_eq(grown, number(double(options_.growth_interval)), place);
  const TensorList larger =
      foreach_mul(scale, number(options_.growth_factor), place);
  const TensorList smaller =
      foreach_mul(scale, number(options_.backoff_factor), place);
  const TensorList fits =
      foreach_lt(larger, number(infinite_in_float32), place);
  const TensorList kept =
      foreach_where(foreach_mul(due, fits, place), larger, scale, place);
  const TensorList counted = foreach_where(due, number(0), grown, place);
  foreach_copy_(scale, foreach_where(found_inf, smaller, kept, place), place);
  foreach_copy_(tracker, foreach_where(found_inf, number(0), counted, place),
                place);
}

void GradScaler::update(const Scalar& new_scale, std::source_location place) {
  if (!options_.enabled) return;
  if (scale_.defined()) {
    const TensorList scale = TensorList::per_tensor({scale_}, "scale");
    foreach_fill_(scale, new_scale, place);
  } else {
    options_.init_scale = new_scale.value();
  }
  progress_.change().clear();
}

std::optional<Scalar> GradScaler::found_inf(const Optimizer& optimizer) const {
  const Progress* const own = find(optimizer);
  return own == nullptr ? std::nullopt : own->found_inf;
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_.defined() ? scale_.item() : options_.init_scale;
}

GradScalerState GradScaler::state_dict() const {
  const double tracker = tracker_.defined() ? tracker_.item() : first_tracker_;
  return {get_scale(), options_.growth_factor, options_.backoff_factor,
          options_.growth_interval, std::int64_t(tracker)};
}

void GradScaler::load_state_dict(const GradScalerState& state) {
  GradScalerOptions wanted = options_;
  wanted.init_scale = state.scale;
  wanted.growth_factor = state.growth_factor;
  wanted.backoff_factor = state.backoff_factor;
  wanted.growth_interval = state.growth_interval;
  check(wanted);
  options_ = wanted;
  first_tracker_ = double(state.growth_tracker);
  if (!scale_.defined()) return;
  scale_.fill_(state.scale);
  tracker_.fill_(first_tracker_);
}

}  // namespace fuse
