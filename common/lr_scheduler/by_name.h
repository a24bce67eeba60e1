#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fusebook/lr_scheduler/scheduler.h"

namespace fuse {

/// The schedulers that can be made from their name alone, as torch calls them.
std::vector<std::string> scheduler_names();

/// The scheduler of that name, for `steps` steps: with torch's defaults, and
/// with lengths that make it move within them. Cycles go up to the rates that
/// the groups have now. Throws Error for another name, or fewer than 4 steps.
std::unique_ptr<LRScheduler> make_scheduler(const std::string& name,
                                            Optimizer& optimizer,
                                            std::int64_t steps);

}  // namespace fuse
