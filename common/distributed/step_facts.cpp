#include "fusebook/distributed/step_facts.h"

#include <fmt/core.h>

#include "fusebook/support/number_text.h"

namespace fuse {
namespace {

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
