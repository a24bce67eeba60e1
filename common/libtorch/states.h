#pragma once

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fusebook/libtorch/params.h"
#include "fusebook/libtorch/raw_tensor.h"
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

/// True if two keys are one.
template <class Key>
bool is_key(const Key& a, const Key& b) {
  if constexpr (std::is_same_v<Key, std::string>) {
    // As long as addresses are: no call is needed for these.
    constexpr std::size_t usual = sizeof("0x7f0123456789") - 1;
    if (a.size() == usual && b.size() == usual) {
      return std::memcmp(a.data(), b.data(), usual) == 0;
    }
  }
  return a == b;
}

/// Keeps the states that LibTorch shows and those that our optimizer steps the
/// same: tensors share memory, and what a program puts in their place is taken
/// over.
template <class Kind>
class States {
 public:
  explicit States(Stepper<Kind>& stepper) : stepper_(stepper) {}

  /// To call when parameters came or went.
  void follow(const Groups& groups);
  /// To call before the others: the options as they are now.
  void look_at(Groups& groups);
  /// Finds out what the program may have changed, while gradients are collected.
  void walk(const StateMap& map) noexcept;
  /// Takes over what the program has changed, of parameters that have a gradient
  /// or, if `all`, of every one. Throws Error for states that do not fit; then
  /// nothing has changed.
  void take(Groups& groups, StateMap& map, bool all);
  /// Counts the step.
  void count() noexcept;
  /// Shows what a step has made.
  void give(Groups& groups, StateMap& map);

 private:
  using ParamState = typename Kind::ParamState;
  using Options = typename Kind::Options;

  // What was shown last of a parameter.
  struct Shown {
    const c10::TensorImpl* param = nullptr;  // null: it is none of ours
    std::size_t i = 0;
    std::size_t group = 0;
    typename StateMap::key_type key = {};
    ParamState* state = nullptr;
    std::int64_t step = 0;
    // Held, so that no other tensor gets the address of one that was replaced.
    std::array<at::Tensor, 4> tensors = {};
  };
  enum class Found { same, to_show, changed };
  static constexpr std::size_t ahead = 8;

  template <class Visit>
  void each(Groups& groups, bool all, Visit visit);
  static Found compare(const Shown& shown, const Options& options);
  Found look(Shown& shown, const Options& options, StateMap& map);
  bool is_stepped(const Shown& shown) const;
  void list(StateMap& map);
  bool is_same(const Shown& shown, const ParamState* state) const;
  bool all_same() const;
  ParamStates taken(std::size_t i, Shown& shown, const Options& options) const;
  void show(std::size_t i, const Options& options, StateMap& map);

  Shown& shown(std::size_t i) { return shown_[places_[i]]; }

  Stepper<Kind>& stepper_;
  // The first `listed_` are what the map held, in its order, when nothing had
  // changed. One walk over both then says whether it is so again.
  std::vector<Shown> shown_;
  std::vector<std::size_t> places_;  // of parameters, in shown_
  std::size_t listed_ = 0;
  bool same_keys_ = false;               // so the last walk said
  std::vector<std::size_t> not_same_;    // places, of the same walk
  std::vector<const Options*> options_;  // of groups; null: they keep no states
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

template <class Kind>
void States<Kind>::look_at(Groups& groups) {
  options_.clear();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Options& options = options_of<Kind>(groups[g], g);
    options_.push_back(Kind::keeps_states(options) ? &options : nullptr);
  }
}

template <class Kind>
void States<Kind>::follow(const Groups& groups) {
  std::unordered_map<const c10::TensorImpl*, Shown> known;
  for (Shown& shown : shown_) known.emplace(shown.param, std::move(shown));
  shown_.clear();
  places_.clear();
  listed_ = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const at::Tensor& each : groups[g].params()) {
      c10::TensorImpl* const param = each.unsafeGetTensorImpl();
      Shown& shown = shown_.emplace_back();
      if (const auto same = known.find(param); same != known.end()) {
        shown = std::move(same->second);
      }
      shown.param = param;
      shown.i = places_.size();
      shown.group = g;
      shown.key = key_of<typename StateMap::key_type>(param);
      places_.push_back(shown.i);
    }
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
  if (shown.state == nullptr) {
    return was_there ? Found::changed : Found::to_show;
  }
  const Found now = compare(shown, options);
  return now == Found::same && !was_there ? Found::to_show : now;
}

// Beside what was shown.
template <class Kind>
auto States<Kind>::compare(const Shown& shown, const Options& options)
    -> Found {
  const std::int64_t* const step = step_of(*shown.state);
  bool same = step == nullptr || *step == shown.step;
  bool complete = true;
  std::size_t k = 0;
  Kind::states(*shown.state, options, [&](const char*, at::Tensor& tensor) {
    same = same && tensor.is_same(shown.tensors[k++]);
    complete = complete && tensor.defined();
  });
  if constexpr (requires { Kind::is_complete(*shown.state); }) {
    complete = Kind::is_complete(*shown.state);  // some never have all of them
  }
  if (!same) return Found::changed;
  return complete ? Found::same : Found::to_show;
}

template <class Kind>
bool States<Kind>::is_stepped(const Shown& shown) const {
  return shown.param != nullptr && options_[shown.group] != nullptr &&
         stepper_.params().has_gradient(shown.i);
}

// Brings what is shown into the map's order.
template <class Kind>
void States<Kind>::list(StateMap& map) {
  std::unordered_map<const void*, Shown*> known;
  for (Shown& shown : shown_) {
    if (shown.state != nullptr) known.emplace(shown.state, &shown);
  }
  std::vector<Shown> listed;
  listed.reserve(map.size() + shown_.size());
  for (const auto& [key, state] : map) {
    const auto found = known.find(state.get());
    if (found != known.end() && found->second->key == key) {
      listed.push_back(std::move(*found->second));
      found->second->param = nullptr;
    } else {
      listed.push_back({.key = key});
    }
  }
  listed_ = listed.size();
  for (Shown& shown : shown_) {
    if (shown.param != nullptr) listed.push_back(std::move(shown));
  }
  shown_ = std::move(listed);
  not_same_.reserve(listed_);
  for (std::size_t k = 0; k < shown_.size(); ++k) {
    if (shown_[k].param != nullptr) places_[shown_[k].i] = k;
  }
}

template <class Kind>
bool States<Kind>::is_same(const Shown& shown, const ParamState* state) const {
  if (shown.param == nullptr) return true;
  const Options* const options = options_[shown.group];
  return options == nullptr ||
         (state == shown.state && compare(shown, *options) == Found::same);
}

template <class Kind>
void States<Kind>::walk(const StateMap& map) noexcept {
  not_same_.clear();
  same_keys_ = listed_ != 0 && listed_ == map.size();
  if (!same_keys_) return;
  const Shown* shown = shown_.data();
  const Shown* const end = shown + listed_;
  for (const auto& [key, state] : map) {
    if (shown + ahead < end) fetch(shown[ahead].state, sizeof(ParamState));
    same_keys_ = is_key(key, shown->key);
    if (!same_keys_) return;
    if (!is_same(*shown, static_cast<const ParamState*>(state.get()))) {
      not_same_.push_back(std::size_t(shown - shown_.data()));
    }
    ++shown;
  }
}

// True if each parameter that has a gradient has the states that were shown.
template <class Kind>
bool States<Kind>::all_same() const {
  const auto stepped = [&](const Shown& each) { return is_stepped(each); };
  return same_keys_ &&
         std::none_of(not_same_.begin(), not_same_.end(),
                      [&](std::size_t k) { return stepped(shown_[k]); }) &&
         std::none_of(shown_.begin() + std::ptrdiff_t(listed_), shown_.end(),
                      stepped);
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
  if (!all && all_same()) return;
  listed_ = 0;
  std::vector<std::size_t> changed;
  std::vector<Tensor> params;
  std::vector<ParamStates> states;
  auto& optimizer = stepper_.optimizer();
  each(groups, all, [&](std::size_t i, std::size_t g, const Options& options) {
    const Found found = look(shown(i), options, map);
    if (found == Found::to_show) to_show_.push_back(i);
    if (found != Found::changed) return;
    const Tensor& param = stepper_.params().tensor(i);
    changed.push_back(i);
    params.push_back(param);
    states.push_back(taken(i, shown(i), options));
    optimizer.check_states(
        c10::str(Kind::name, ": ", stepper_.params().name_of(i), ": "), g,
        param, states.back());
  });
  if (changed.empty()) {
    if (to_show_.empty()) list(map);
    return;
  }
  optimizer.prepare_states(params, states);
  for (std::size_t k = 0; k < changed.size(); ++k) {
    optimizer.restore_states(params[k], states[k]);
  }
  for (const std::size_t i : changed) {
    const std::size_t g = stepper_.params().group_of(i);
    if (shown(i).state != nullptr) {
      show(i, options_of<Kind>(groups[g], g), map);
    }
    to_show_.push_back(i);
  }
}

template <class Kind>
void States<Kind>::show(std::size_t i, const Options& options, StateMap& map) {
  Shown& shown = this->shown(i);
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
                 shown.tensors[k++] = tensor;
               });
  if (std::int64_t* const step = step_of(*shown.state)) {
    const Tensor own = optimizer.state(param, "step");
    *step = shown.step = own.defined() ? std::int64_t(own.item()) : 0;
  }
}

template <class Kind>
void States<Kind>::count() noexcept {
  for (std::size_t k = 0; k < shown_.size(); ++k) {
    if (k + ahead < shown_.size()) {
      fetch(shown_[k + ahead].state, sizeof(ParamState));
    }
    Shown& shown = shown_[k];
    if (shown.state == nullptr || !is_stepped(shown)) continue;
    if (std::int64_t* const step = step_of(*shown.state)) *step = ++shown.step;
  }
}

template <class Kind>
void States<Kind>::give(Groups& groups, StateMap& map) {
  for (const std::size_t i : to_show_) {
    const std::size_t g = stepper_.params().group_of(i);
    if (stepper_.params().has_gradient(i)) {
      show(i, options_of<Kind>(groups[g], g), map);
    }
  }
  to_show_.clear();
}

}  // namespace fuse::libtorch::detail
