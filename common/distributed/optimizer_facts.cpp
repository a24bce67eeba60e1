#include "fusebook/distributed/optimizer_facts.h"

#include <fmt/core.h>

#include "fusebook/ir/program.h"
#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

// As reports of recompiles write it.
std::string place_of(std::size_t group, const std::string& name) {
  return to_string(Origin{.name = name.c_str(), .group = int(group)});
}

// Not its number: each rank may have a GPU of its own.
std::string kind_of(const Device& device) {
  return to_string(Device{device.kind});
}

}  // namespace

std::vector<std::string> facts_of_optimizer(Optimizer& optimizer) {
  std::vector<std::string> facts = {
      optimizer.name(), fmt::format("steps() = {}", optimizer.steps()),
      fmt::format("{} groups", optimizer.group_count())};
  for (std::size_t g = 0; g < optimizer.group_count(); ++g) {
    ParamGroup& group = optimizer.group(g);
    for (const auto& [name, number] : group.numbers()) {
      facts.push_back(fmt::format("{} = {}", place_of(g, name),
                                  number_text(number->value())));
    }
    for (const auto& [name, on] : group.switches()) {
      facts.push_back(fmt::format("{} = {}", place_of(g, name), *on));
    }
    facts.push_back(
        fmt::format("{} = {}", place_of(g, "states_8bit"), group.states_8bit));
    if (!group.states_8bit) continue;
    facts.push_back(fmt::format("{} = {}", place_of(g, "min_8bit_size"),
                                group.min_8bit_size));
  }
  return facts;
}

std::vector<std::string> facts_of_params(
    const std::vector<Tensor>& params, const std::vector<std::size_t>& group) {
  std::vector<std::string> facts;
  for (std::size_t p = 0; p < params.size(); ++p) {
    facts.push_back(fmt::format(
        "parameter {} in group {} with shape {}, strides {} and {} on {}", p,
        group[p], to_string(params[p].shape()), to_string(params[p].strides()),
        name_of(params[p].dtype()), kind_of(params[p].device())));
  }
  return facts;
}

}  // namespace fuse
