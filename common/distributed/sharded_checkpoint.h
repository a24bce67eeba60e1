#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/distributed/sharded_optimizer.h"

namespace fuse {

/// Saves the run of all ranks as one file, which any number of ranks can go on
/// from, and one process as well: it is what `save_checkpoint` writes there. All
/// ranks call it and send their states to rank 0, which needs memory for all of
/// them, and writes. Throws RanksDisagree on all ranks if it fails on one, and
/// Error after a step that failed: what is saved is a whole step.
void save_checkpoint(
    const std::string& path, ShardedOptimizer& sharded,
    const std::vector<const SchedulerBase*>& schedulers = {},
    std::source_location place = std::source_location::current());

/// Resumes a run that any number of ranks or one process has saved. All ranks call
/// it and read the file, and keep of its states those of their shares. Throws
/// RanksDisagree on all ranks if it fails on one; then nothing has changed, if it
/// failed on all.
void load_checkpoint(
    const std::string& path, ShardedOptimizer& sharded,
    const std::vector<SchedulerBase*>& schedulers = {},
    const LoadOptions& options = {},
    std::source_location place = std::source_location::current());

}  // namespace fuse
