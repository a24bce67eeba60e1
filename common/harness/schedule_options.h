#pragma once

#include <string>

#include "fusebook/harness/options.h"
#include "fusebook/harness/stack_options.h"
#include "fusebook/lr_scheduler/by_name.h"
#include "fusebook/programs/policy.h"

namespace fuse {

/// `--scheduler NAME`, for make_scheduler().
inline ChoiceOption scheduler_option(const std::string& name) {
  return {"scheduler", name, scheduler_names(), "the schedule of the rate"};
}

/// `--policy NAME`, for policy_named().
inline ChoiceOption policy_option() {
  return {"policy",
          policy_names[std::size_t(Policy::promote)],
          {policy_names.begin(), policy_names.end()},
          "when a number has moved"};
}

/// The options of a recipe that schedules a linear stack: its size, and
/// `--scheduler` and `--policy`.
inline OptionSet schedule_options(std::int64_t layers, std::int64_t width,
                                  const std::string& scheduler = "OneCycleLR") {
  return {stack_options(layers, width),
          {scheduler_option(scheduler), policy_option()}};
}

}  // namespace fuse
