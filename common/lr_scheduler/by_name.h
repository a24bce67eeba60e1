#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// The schedulers that make_scheduler knows, by their torch names.
std::vector<std::string> scheduler_names();

/// Makes the scheduler of that name for `steps` steps: with torch's defaults,
/// except for lengths, which are chosen so that it moves within those steps.
/// Cycles rise to the current rates of the groups. Throws Error for an unknown
/// name, or fewer than 4 steps.
std::unique_ptr<LRScheduler> make_scheduler(const std::string& name,
                                            Optimizer& optimizer,
                                            std::int64_t steps);

}  // namespace fuse
