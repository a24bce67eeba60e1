#pragma once

#include <source_location>
#include <string>
#include <vector>

#include "fusebook/checkpoint/checkpoint.h"
#include "fusebook/distributed/sharded_optimizer.h"

namespace fuse {

/// Saves the run of all ranks as one file, which any number of ranks can go on
/// from, and one process as well: byte by byte it is what `save_checkpoint` writes
/// there. All ranks call it, and each writes its share into the file, a tensor at
/// a time, so none needs memory for more. All must reach the folder under the same
/// path, on a file system where processes can write different parts of one file;
/// what has no such parts, like a pipe, cannot be written. The file appears
/// complete or not at all: until then it has another name, next to it, under which
/// a run that is killed leaves it. Throws RanksDisagree on all ranks if it fails on
/// one, with the old file in its place, and Error after a step that failed: what is
/// saved is a whole step.
void save_checkpoint(
    const std::string& path, ShardedOptimizer& sharded,
    const std::vector<const SchedulerBase*>& schedulers = {},
    std::source_location place = std::source_location::current());

/// Resumes a run that any number of ranks or one process has saved. All ranks call
/// it, and each reads the whole file, for which it needs the memory, checks it, and
/// keeps of its states those of its shares. Throws
/// RanksDisagree on all ranks if it fails on one; then nothing has changed, if it
/// failed on all.
void load_checkpoint(
    const std::string& path, ShardedOptimizer& sharded,
    const std::vector<SchedulerBase*>& schedulers = {},
    const LoadOptions& options = {},
    std::source_location place = std::source_location::current());

}  // namespace fuse
