#include "fusebook/optim_base/param_group.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "fusebook/optim_base/state_store.h"
#include "fusebook/support/call_place.h"
#include "fusebook/support/error.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

std::string full_name(const char* name, int index) {
  return index < 0 ? name : fmt::format("{}[{}]", name, index);
}

// True if `text` is "name", or "name[index]". Allocates nothing.
bool goes_by(std::string_view text, std::string_view name, int index) {
  if (index < 0) return text == name;
  if (!text.starts_with(name) || !text.ends_with(']')) return false;
  text.remove_prefix(name.size());
  if (!text.starts_with('[')) return false;
  int number = -1;
  const char* const end = text.data() + text.size() - 1;
  const auto result = std::from_chars(text.data() + 1, end, number);
  return result.ec == std::errc() && result.ptr == end && number == index;
}

}  // namespace

std::span<const GroupStorage::Switch> GroupStorage::saved_switches() {
  static constexpr Switch all[] = {
      {"master_weights", &GroupStorage::master_weights},
      {"split_masters", &GroupStorage::split_masters},
      {"stochastic_rounding", &GroupStorage::stochastic_rounding},
      {"opmath", &GroupStorage::opmath, false}};
  return all;
}

void GroupStorage::check_sizes(const std::string& place) const {
  if (min_8bit_size < 0) {
    throw Error(fmt::format("{}min_8bit_size must not be negative, but is {}",
                            place, min_8bit_size));
  }
  check_state_block_size(place, state_block_size);
}

ParamGroup::ParamGroup(NamedParams named) {
  for (auto& [name, tensor] : named) {
    param_names.push_back(std::move(name));
    params.push_back(std::move(tensor));
  }
}

std::vector<ParamGroup::Named> ParamGroup::scalars() {
  std::vector<Named> all;
  visit_scalars([&](const Named& named) { all.push_back(named); });
  return all;
}

// Schedulers look up what they move at every step, so this must not allocate.
Scalar* ParamGroup::find(const std::string& name) {
  Scalar* found = nullptr;
  visit_scalars([&](const Named& named) {
    if (goes_by(name, named.name, named.index)) found = named.scalar;
  });
  return found;
}

void ParamGroup::name_numbers(int group) {
  visit_scalars([group](const Named& named) {
    Origin origin = named.scalar->origin();
    origin.name = named.name;
    origin.index = named.index;
    origin.group = group;
    named.scalar->set_origin(origin);
  });
}

std::vector<std::pair<std::string, Scalar*>> ParamGroup::numbers() {
  std::vector<std::pair<std::string, Scalar*>> all;
  for (const Named& named : scalars()) {
    all.emplace_back(full_name(named.name, named.index), named.scalar);
  }
  return all;
}

Scalar& ParamGroup::operator[](const std::string& name) {
  if (Scalar* const found = find(name)) return *found;
  std::string known;
  for (const Named& named : scalars()) {
    add_item(known, full_name(named.name, named.index));
  }
  for (const auto& [flag, on] : flags()) add_item(known, flag);
  throw Error("a parameter group of this optimizer has no \"" + name + "\"" +
              at_call() + "; it has " + known);
}

std::vector<std::pair<std::string, bool*>> ParamGroup::flags() {
  std::vector<std::pair<std::string, bool*>> all;
  visit_flags([&](const char* name, bool& on) { all.emplace_back(name, &on); });
  for (const Switch& each : saved_switches()) {
    if (this->*each.on) all.emplace_back(each.name, &(this->*each.on));
  }
  return all;
}

std::vector<std::pair<std::string, bool*>> ParamGroup::switches() {
  auto all = flags();
  for (const Switch& each : saved_switches()) {
    if (!(this->*each.on)) all.emplace_back(each.name, &(this->*each.on));
  }
  return all;
}

void ParamGroup::check_option(const std::string& name,
                              const OptionValue& value) {
  const auto known = switches();
  const bool is_switch =
      std::any_of(known.begin(), known.end(),
                  [&](const auto& flag) { return flag.first == name; });
  const bool number = std::holds_alternative<Scalar>(value);
  if (is_switch && number) {
    throw Error("\"" + name + "\" takes true or false, not a number" +
                at_call());
  }
  if (is_switch) return;
  // An unknown name is an error of the look-up, which lists the known ones.
  if (name != "initial_lr") static_cast<void>((*this)[name]);
  if (!number) {
    throw Error("\"" + name + "\" takes a number, not true or false" +
                at_call());
  }
}

void ParamGroup::check(const GroupOptions& values) {
  for (const auto& [name, value] : values) check_option(name, value);
}

void ParamGroup::set(const GroupOptions& values) {
  check(values);
  for (const auto& [name, value] : values) {
    if (const bool* const wanted = std::get_if<bool>(&value)) {
      for (const auto& [known, on] : switches()) {
        if (known == name) *on = *wanted;
      }
    } else if (name == "initial_lr") {
      initial_lr = std::get<Scalar>(value).value();
    } else {
      (*this)[name] = std::get<Scalar>(value);
    }
  }
}

namespace {

// The position of a parameter.
struct Place {
  std::size_t group;
  std::size_t param;
};

std::string describe(const std::vector<const ParamGroup*>& groups,
                     const Place& place) {
  return describe_param(groups, place.group, place.param);
}

[[noreturn]] void refuse_twice(const std::vector<const ParamGroup*>& groups,
                               const Place& first, const Place& again) {
  const std::string start = "optimizer: " + describe(groups, again);
  if (first.group == again.group) {
    throw Error(fmt::format(
        "{} is the same tensor as parameter {} of that group{}; list each "
        "parameter once",
        start, first.param, at_call()));
  }
  throw Error(start + " is the same tensor as " + describe(groups, first) +
              at_call() + "; put each parameter in one group only");
}

void check_count(const ParamGroup& group, std::size_t g) {
  const std::size_t names = group.param_names.size();
  if (names == 0 || names == group.params.size()) return;
  throw Error(fmt::format(
      "optimizer: group {} has {} names for {} parameters{}; give each a name, "
      "or none",
      g, names, group.params.size(), at_call()));
}

void check_names(const std::vector<const ParamGroup*>& groups) {
  std::set<std::string_view> seen;
  std::optional<std::size_t> named;
  std::optional<std::size_t> unnamed;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    check_count(*groups[g], g);
    if (groups[g]->params.empty()) continue;
    (groups[g]->param_names.empty() ? unnamed : named) = g;
    for (const std::string& name : groups[g]->param_names) {
      if (seen.insert(name).second) continue;
      throw Error("optimizer: two parameters are named \"" + name + "\"" +
                  at_call() + "; give each its own name");
    }
  }
  if (!named || !unnamed) return;
  throw Error(fmt::format(
      "optimizer: the parameters of group {} have names, but those of group {} "
      "do not{}; name all of them or none",
      *named, *unnamed, at_call()));
}

}  // namespace

std::string describe_param(const std::vector<const ParamGroup*>& groups,
                           std::size_t group, std::size_t param) {
  if (group >= groups.size() || groups[group] == nullptr) {
    throw Error(fmt::format("describe_param: no group {}", group));
  }
  const auto& names = groups[group]->param_names;
  const std::string place =
      fmt::format("parameter {} of group {}", param, group);
  return param < names.size() ? place + " (\"" + names[param] + "\")" : place;
}

void check_parameters(const std::vector<const ParamGroup*>& groups) {
  std::unordered_map<const TensorImpl*, Place> seen;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g] == nullptr) {
      throw Error(fmt::format("check_parameters: group {} is null", g));
    }
    for (std::size_t i = 0; i < groups[g]->params.size(); ++i) {
      const Tensor& param = groups[g]->params[i];
      if (!param.defined()) {
        throw Error("optimizer: " + describe_param(groups, g, i) +
                    " is an undefined tensor" + at_call());
      }
      const auto [first, fresh] = seen.try_emplace(param.impl().get(), g, i);
      if (!fresh) refuse_twice(groups, first->second, {g, i});
    }
  }
  check_names(groups);
}

}  // namespace fuse
