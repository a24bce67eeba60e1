#include "fusebook/optim_base/param_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "fusebook/support/error.h"
#include "fusebook/support/join.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

using Names = std::vector<std::string>;

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

std::string listed(const Names& names) { return join(names, ", ", quoted); }

// Those of `names` that are not in `others`.
Names without(const Names& names, const Names& others) {
  const std::set<std::string> known(others.begin(), others.end());
  Names rest;
  std::copy_if(names.begin(), names.end(), std::back_inserter(rest),
               [&](const std::string& name) { return !known.contains(name); });
  return rest;
}

void check_renames(const std::vector<Names>& saved, const std::string& where,
                   const LoadOptions& options) {
  for (const auto& [old_name, name] : options.renames) {
    const bool known =
        std::any_of(saved.begin(), saved.end(), [&](const Names& names) {
          return std::find(names.begin(), names.end(), old_name) != names.end();
        });
    if (known) continue;
    throw Error("renames lists " + quoted(old_name) +
                ", but no parameter has that name " + where);
  }
}

// The names after the renames.
Names renamed(Names names, const LoadOptions& options) {
  for (std::string& name : names) {
    const auto found = options.renames.find(name);
    if (found != options.renames.end()) name = found->second;
  }
  return names;
}

// The names that only one side has, over all groups.
class Differences {
 public:
  explicit Differences(std::string where) : where_(std::move(where)) {}

  void add(std::size_t group, const Names& here, const Names& saved) {
    const Names missing = without(here, saved);
    const Names unknown = without(saved, here);
    if (missing.empty() && unknown.empty()) return;
    text_ += (text_.empty() ? "" : "; ") + group_name(group) +
             " has different names: ";
    if (!missing.empty()) text_ += listed(missing) + " missing " + where_;
    if (!missing.empty() && !unknown.empty()) text_ += ", ";
    if (!unknown.empty()) text_ += listed(unknown) + " unknown here";
    for (std::size_t i = 0; i < std::min(missing.size(), unknown.size()); ++i) {
      renames_ += (renames_.empty() ? "{" : ", {") + quoted(unknown[i]) + ", " +
                  quoted(missing[i]) + "}";
    }
  }
  void check() const {
    if (text_.empty()) return;
    throw Error(text_ +
                (renames_.empty()
                     ? ""
                     : "; if they were renamed, load with .renames = {" +
                           renames_ + "}"));
  }

 private:
  std::string where_;
  std::string text_;
  std::string renames_;
};

void check_count(const ParamGroup& here, const Names& saved, std::size_t g) {
  if (saved.empty() || saved.size() == here.params.size()) return;
  throw Error(fmt::format("{} has {} names for {} parameters", group_name(g),
                          saved.size(), here.params.size()));
}

std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t(0));
  return places;
}

std::vector<std::size_t> by_name(const Names& here, const Names& saved) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < here.size(); ++i) places[here[i]] = i;
  std::vector<std::size_t> found;
  for (const std::string& name : saved) found.push_back(places.at(name));
  return found;
}

}  // namespace

std::string group_name(std::size_t group) {
  return fmt::format("param_groups[{}]", group);
}

std::vector<std::vector<std::size_t>> places_by_name(
    const std::vector<const ParamGroup*>& here,
    const std::vector<std::vector<std::string>>& saved,
    const std::string& where, const LoadOptions& options) {
  check_renames(saved, where, options);
  Differences differences(where);
  std::vector<Names> now;
  for (std::size_t g = 0; g < here.size(); ++g) {
    check_count(*here[g], saved[g], g);
    now.push_back(renamed(saved[g], options));
    if (here[g]->param_names.empty()) now.back().clear();
    if (!now.back().empty()) differences.add(g, here[g]->param_names, now[g]);
  }
  differences.check();
  std::vector<std::vector<std::size_t>> places;
  for (std::size_t g = 0; g < here.size(); ++g) {
    places.push_back(now[g].empty() ? in_order(here[g]->params.size())
                                    : by_name(here[g]->param_names, now[g]));
  }
  return places;
}

}  // namespace fuse
