#include "fusebook/distributed/facts.h"

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

std::string text_of(const std::optional<double>& number) {
  return number ? number_text(*number) : "nothing";
}

std::string text_of(const GradScalerState& state) {
  return fmt::format(
      "scaler = scale {}, growth_factor {}, backoff_factor {}, "
      "growth_interval {}, growth_tracker {}",
      number_text(state.scale), number_text(state.growth_factor),
      number_text(state.backoff_factor), state.growth_interval,
      state.growth_tracker);
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
    if (group.stochastic_rounding) {
      facts.push_back(fmt::format("{} = {}", place_of(g, "rounding_seed"),
                                  group.rounding_seed));
    }
    facts.push_back(
        fmt::format("{} = {}", place_of(g, "states_8bit"), group.states_8bit));
    if (!group.states_8bit) continue;
    facts.push_back(fmt::format("{} = {}", place_of(g, "min_8bit_size"),
                                group.min_8bit_size));
    facts.push_back(fmt::format("{} = {}", place_of(g, "state_block_size"),
                                group.state_block_size));
  }
  return facts;
}

std::vector<std::string> facts_of_params(
    const std::vector<Tensor>& params, const std::vector<std::size_t>& group) {
  std::vector<std::string> facts = {
      fmt::format("parameters: {}", params.size())};
  for (std::size_t p = 0; p < params.size(); ++p) {
    facts.push_back(fmt::format(
        "parameter {} in group {} with shape {}, strides {} and {} on {}", p,
        group[p], to_string(params[p].shape()), to_string(params[p].strides()),
        name_of(params[p].dtype()), kind_of(params[p].device())));
  }
  return facts;
}

bool scales(const ShardedStep& options) {
  return options.scaler != nullptr && options.scaler->is_enabled();
}

std::vector<std::string> facts_of_step(const ShardedStep& options) {
  return {scales(options) ? text_of(options.scaler->state_dict())
                          : "scaler = nothing",
          "divide_by = " + text_of(options.divide_by),
          "max_norm = " + text_of(options.max_norm),
          fmt::format("skip_nonfinite = {}", options.skip_nonfinite)};
}

}  // namespace fuse
