#include "fusebook/optim_base/state_dict.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "fusebook/optim_base/optimizer.h"
#include "fusebook/optim_base/param_names.h"
#include "fusebook/support/error.h"
#include "fusebook/support/number_text.h"
#include "fusebook/trace/recorder.h"

namespace fuse {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error("cannot load the state dict: " + why);
}

void check_option(ParamGroup& group, const std::string& place,
                  const std::pair<std::string, OptionValue>& option) {
  try {
    group.check({option});
  } catch (const Error& error) {
    refuse(place + ": " + error.what());
  }
}

// The options must match exactly.
void check_options(ParamGroup& here, const StateDict::Group& there,
                   std::size_t g) {
  const std::string place = group_name(g);
  if (there.params.size() != here.params.size()) {
    refuse(fmt::format("{} has {} parameters in the state dict, but {} here",
                       place, there.params.size(), here.params.size()));
  }
  std::set<std::string_view> known;
  for (const auto& option : there.options) {
    check_option(here, place, option);
    if (known.insert(option.first).second) continue;
    refuse(place + " has \"" + option.first + "\" twice");
  }
  const auto has = [&](const std::string& name) {
    return std::any_of(
        there.options.begin(), there.options.end(),
        [&](const auto& option) { return option.first == name; });
  };
  for (const auto& [name, number] : here.numbers()) {
    if (!has(name)) refuse(place + " has no \"" + name + "\"");
  }
  const auto may_lack = [&](const bool* on) {
    return std::ranges::any_of(
        GroupStorage::saved_switches(), [&](const auto& each) {
          return &(here.*each.on) == on && !each.has_states;
        });
  };
  for (const auto& [name, on] : here.flags()) {
    if (!has(name) && !may_lack(on)) {
      refuse(place + " has no \"" + name + "\"");
    }
  }
}

// Every state belongs to one parameter of the groups.
void check_numbers(const StateDict& all) {
  std::map<std::size_t, std::size_t> group_of;
  for (std::size_t g = 0; g < all.param_groups.size(); ++g) {
    for (const std::size_t number : all.param_groups[g].params) {
      const auto [first, fresh] = group_of.try_emplace(number, g);
      if (fresh) continue;
      const std::string start = fmt::format("parameter {} is in {}", number,
                                            group_name(first->second));
      refuse(start + (first->second == g ? " twice" : " and " + group_name(g)));
    }
  }
  for (const auto& [number, states] : all.state) {
    if (group_of.contains(number)) continue;
    refuse(fmt::format(
        "state[{}] is of a parameter that is in none of its groups", number));
  }
}

std::vector<std::vector<std::size_t>> places_of(
    const std::vector<const ParamGroup*>& here, const StateDict& all,
    const LoadOptions& options) {
  std::vector<std::vector<std::string>> names;
  for (const auto& there : all.param_groups) names.push_back(there.param_names);
  try {
    return places_by_name(here, names, "in the state dict", options);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

// Sets the switches of a group, and restores them unless told to keep them:
// they determine which states an optimizer has, so they come first.
class Switches {
 public:
  Switches(ParamGroup& group, const StateDict::Group& there) {
    for (const auto& [name, on] : group.switches()) {
      before_.emplace_back(on, *on);
      for (const auto& [known, value] : there.options) {
        if (known == name) *on = std::get<bool>(value);
      }
    }
  }
  Switches(const Switches&) = delete;
  Switches& operator=(const Switches&) = delete;
  Switches(Switches&&) = default;
  Switches& operator=(Switches&&) = delete;
  ~Switches() {
    for (const auto& [on, was] : before_) *on = was;
  }
  void keep() { before_.clear(); }

 private:
  std::vector<std::pair<bool*, bool>> before_;
};

void load_number(Scalar& here, const Scalar& there) {
  if (!here.is_tensor() && there.is_tensor()) {
    here = Scalar(there.tensor().clone());
    return;
  }
  const double value = there.value();
  const bool moved = std::bit_cast<std::uint64_t>(value) !=
                     std::bit_cast<std::uint64_t>(here.value());
  here.assign(value);
  if (moved && !here.is_tensor()) here.set_moves();
}

void load_options(ParamGroup& here, const StateDict::Group& there) {
  for (const auto& [name, value] : there.options) {
    const Scalar* const number = std::get_if<Scalar>(&value);
    if (number != nullptr) load_number(here[name], *number);
  }
  here.initial_lr = there.initial_lr;
}

}  // namespace

StateDict Optimizer::state_dict() {
  StateDict all;
  all.optimizer = name();
  all.steps = steps();
  std::size_t next = 0;
  for (std::size_t g = 0; g < group_count(); ++g) {
    ParamGroup& own = group(g);
    StateDict::Group& out = all.param_groups.emplace_back();
    for (const auto& [name, number] : own.numbers()) {
      out.options.emplace_back(name, *number);
    }
    for (const auto& [name, on] : own.flags()) {
      out.options.emplace_back(name, *on);
    }
    out.initial_lr = own.initial_lr;
    out.param_names = own.param_names;
    for (const Tensor& param : own.params) {
      if (ParamStates kept = states_in_use(g, param); !kept.empty()) {
        all.state.emplace(next, std::move(kept));
      }
      out.params.push_back(next++);
    }
  }
  return all;
}

// Everything that can fail comes before the first change.
void Optimizer::load_state_dict(const StateDict& all,
                                const LoadOptions& options) {
  if (Recorder::current() != nullptr) {
    refuse("a compiled function is being recorded; load between two steps");
  }
  if (all.optimizer != name()) {
    refuse("it was saved by " + all.optimizer + ", but this is " + name());
  }
  if (all.param_groups.size() != group_count()) {
    refuse(fmt::format("it has {} parameter groups, but this optimizer has {}",
                       all.param_groups.size(), group_count()));
  }
  std::vector<const ParamGroup*> groups;
  for (std::size_t g = 0; g < group_count(); ++g) {
    check_options(group(g), all.param_groups[g], g);
    groups.push_back(&group(g));
  }
  check_numbers(all);
  const auto places = places_of(groups, all, options);
  std::vector<Tensor> params;
  std::vector<ParamStates> loaded;
  std::vector<Switches> switches;
  switches.reserve(group_count());
  for (std::size_t g = 0; g < group_count(); ++g) {
    const StateDict::Group& there = all.param_groups[g];
    switches.emplace_back(group(g), there);
    for (std::size_t i = 0; i < there.params.size(); ++i) {
      const auto found = all.state.find(there.params[i]);
      params.push_back(group(g).params[places[g][i]]);
      loaded.push_back(found != all.state.end() ? found->second
                                                : ParamStates());
      check_states(fmt::format("cannot load the state dict: state[{}].",
                               number_text(there.params[i])),
                   g, params.back(), loaded.back());
    }
  }
  kept_->states.prepare(params, loaded);
  for (Switches& each : switches) each.keep();
  for (std::size_t i = 0; i < params.size(); ++i) {
    restore_states(params[i], loaded[i]);
  }
  for (std::size_t g = 0; g < group_count(); ++g) {
    load_options(group(g), all.param_groups[g]);
  }
  restore_steps(all.steps);
}

}  // namespace fuse
