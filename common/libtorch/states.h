#pragma once

#include <torch/optim/optimizer.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fusebook/libtorch/params.h"
#include "fusebook/libtorch/stepper.h"
#include "fusebook/libtorch/view.h"
#include "fusebook/optim_base/state_store.h"
#include "fusebook/tensor/tensor.h"

namespace fuse::libtorch::detail {

/// What LibTorch calls `state()`. Its keys are addresses; until version 2.1 they
/// were texts.
using StateMap = std::remove_cvref_t<
    decltype(std::declval<::torch::optim::Optimizer&>().state())>;

template <class Key>
Key key_of(c10::TensorImpl* param) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream text;
    text << param;
    return text.str();
  } else {
    return param;
  }
}

/// Keeps the states that LibTorch shows and those that our optimizer steps the
/// same: tensors share memory, and what a program puts in their place is taken
/// over.
template <class Kind>
class States {
 public:
  explicit States(Stepper<Kind>& stepper) : stepper_(stepper) {}

  /// To call when parameters came or went.
  void follow();
  /// Takes over what the program has changed, of parameters that have a gradient
  /// or, if `all`, of every one. Throws Error for states that do not fit; then
  /// nothing has changed.
  void take(Groups& groups, StateMap& map, bool all);
  /// Shows what a step has made.
  void give(Groups& groups, StateMap& map);

 private:
  using ParamState = typename Kind::ParamState;
  using Options = typename Kind::Options;

  // What was shown last of a parameter.
  struct Shown {
    const c10::TensorImpl* param = nullptr;
    typename StateMap::key_type key;
    ParamState* state = nullptr;
    std::int64_t step = 0;
    std::array<const c10::TensorImpl*, 4> tensors = {};
  };
  enum class Found { same, to_show, changed };

  template <class Visit>
  void each(Groups& groups, bool all, Visit visit);
  Found look(Shown& shown, const Options& options, StateMap& map);
  ParamStates taken(std::size_t i, Shown& shown, const Options& options) const;
  void show(std::size_t i, const Options& options, StateMap& map);

  Stepper<Kind>& stepper_;
  std::vector<Shown> shown_;
  std::vector<std::size_t> to_show_;
};

/// The number of updates, if this kind of state counts them; otherwise null.
template <class ParamState>
std::int64_t* step_of(ParamState& state) {
  if constexpr (requires { state.step(); }) {
    return &state.step();
  } else {
    return nullptr;
  }
}

inline const c10::TensorImpl* impl_of(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.unsafeGetTensorImpl() : nullptr;
}

template <class Kind>
void States<Kind>::follow() {
  const Params& params = stepper_.params();
  std::unordered_map<const c10::TensorImpl*, Shown> known;
  for (Shown& shown : shown_) known.emplace(shown.param, std::move(shown));
  shown_.clear();
  for (std::size_t i = 0; i < params.size(); ++i) {
    c10::TensorImpl* const param = params.object(i).unsafeGetTensorImpl();
    Shown& shown = shown_.emplace_back();
    if (const auto same = known.find(param); same != known.end()) {
      shown = std::move(same->second);
    }
    shown.param = param;
    shown.key = key_of<typename StateMap::key_type>(param);
  }
}

// Calls visit(i, group, options) for the parameters whose states are kept.
template <class Kind>
template <class Visit>
void States<Kind>::each(Groups& groups, bool all, Visit visit) {
  const Params& params = stepper_.params();
  std::size_t i = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t end = i + groups[g].params().size();
    const Options& options = options_of<Kind>(groups[g], g);
    if (Kind::keeps_states(options)) {
      for (; i < end; ++i) {
        if (all || params.has_gradient(i)) visit(i, g, options);
      }
    }
    i = end;
  }
}

template <class Kind>
auto States<Kind>::look(Shown& shown, const Options& options, StateMap& map)
    -> Found {
  const auto found = map.find(shown.key);
  const bool was_there = shown.state != nullptr;
  shown.state = found == map.end()
                    ? nullptr
                    : static_cast<ParamState*>(found->second.get());
  if (shown.state == nullptr)
    return was_there ? Found::changed : Found::to_show;
  const std::int64_t* const step = step_of(*shown.state);
  bool same = step == nullptr || *step == shown.step;
  bool complete = was_there;
  std::size_t k = 0;
  Kind::states(*shown.state, options, [&](const char*, at::Tensor& tensor) {
    same = same && impl_of(tensor) == shown.tensors[k++];
    complete = complete && tensor.defined();
  });
  if (!same) return Found::changed;
  return complete ? Found::same : Found::to_show;
}

// The states of a parameter, copied: two parameters may have changed theirs.
template <class Kind>
ParamStates States<Kind>::taken(std::size_t i, Shown& shown,
                                const Options& options) const {
  ParamStates found;
  if (shown.state == nullptr) return found;
  Kind::states(
      *shown.state, options, [&](const char* name, at::Tensor& tensor) {
        if (!tensor.defined()) return;
        const std::string what =
            c10::str("the state ", name, " of ", stepper_.params().name_of(i));
        found[name] = view_of(what, tensor).clone();
      });
  const std::int64_t* const step = step_of(*shown.state);
  if (step != nullptr && (*step != 0 || !found.empty())) {
    found["step"] = tensor(double(*step), DType::float64);
  } else if (step == nullptr && !found.empty()) {
    // One that does not count is new, or not.
    found["step"] = tensor(1.0, DType::float64);
    found["momentum_steps"] = tensor(1.0, DType::float64);
  }
  return found;
}

template <class Kind>
void States<Kind>::take(Groups& groups, StateMap& map, bool all) {
  to_show_.clear();
  std::vector<std::size_t> changed;
  std::vector<Tensor> params;
  std::vector<ParamStates> states;
  auto& optimizer = stepper_.optimizer();
  each(groups, all, [&](std::size_t i, std::size_t g, const Options& options) {
    const Found found = look(shown_[i], options, map);
    if (found == Found::to_show) to_show_.push_back(i);
    if (found != Found::changed) return;
    const Tensor& param = stepper_.params().tensor(i);
    changed.push_back(i);
    params.push_back(param);
    states.push_back(taken(i, shown_[i], options));
    optimizer.check_states(
        c10::str(Kind::name, ": ", stepper_.params().name_of(i), ": "), g,
        param, states.back());
  });
  if (changed.empty()) return;
  optimizer.prepare_states(params, states);
  for (std::size_t k = 0; k < changed.size(); ++k) {
    optimizer.restore_states(params[k], states[k]);
  }
  for (const std::size_t i : changed) {
    const std::size_t g = stepper_.params().group_of(i);
    if (shown_[i].state != nullptr) {
      show(i, options_of<Kind>(groups[g], g), map);
    }
    to_show_.push_back(i);
  }
}

template <class Kind>
void States<Kind>::show(std::size_t i, const Options& options, StateMap& map) {
  Shown& shown = shown_[i];
  const Tensor& param = stepper_.params().tensor(i);
  const auto& optimizer = stepper_.optimizer();
  auto& slot = map[shown.key];
  if (slot == nullptr) slot = std::make_unique<ParamState>();
  shown.state = static_cast<ParamState*>(slot.get());
  std::size_t k = 0;
  Kind::states(*shown.state, options,
               [&](const char* name, at::Tensor& tensor) {
                 const Tensor own = optimizer.state(param, name);
                 tensor = own.defined() ? view(own) : at::Tensor();
                 shown.tensors[k++] = impl_of(tensor);
               });
  if (std::int64_t* const step = step_of(*shown.state)) {
    const Tensor own = optimizer.state(param, "step");
    *step = shown.step = own.defined() ? std::int64_t(own.item()) : 0;
  }
}

template <class Kind>
void States<Kind>::give(Groups& groups, StateMap& map) {
  each(groups, false, [&](std::size_t i, std::size_t, const Options&) {
    Shown& shown = shown_[i];
    if (shown.state == nullptr) return;
    if (std::int64_t* const step = step_of(*shown.state)) *step = ++shown.step;
  });
  for (const std::size_t i : to_show_) {
    const std::size_t g = stepper_.params().group_of(i);
    if (stepper_.params().has_gradient(i)) {
      show(i, options_of<Kind>(groups[g], g), map);
    }
  }
  to_show_.clear();
}

}  // namespace fuse::libtorch::detail
