#pragma once

#include <functional>
#include <string>

#include "fusebook/jit/jit.h"

namespace fuse::bench {

/// Calls `fn`, which stands for the figure of that name. Throws Error unless the
/// host compiler then ran as often, and the disk cache answered as often, as
/// `expected` says: a figure that came from somewhere else is none.
void call_counted(const std::string& figure, const JitCounters& expected,
                  const std::function<void()>& fn);

}  // namespace fuse::bench
