#pragma once

#include "fusebook/support/function_ref.h"

namespace fuse {

/// When the program uses OpenMP itself (its runtime is loaded where every
/// library can see it), runs the parts on OpenMP's threads and returns true.
/// Those spin for some milliseconds after a region of the program's own; other
/// threads would have to share the CPUs with them. Returns false when there is
/// no OpenMP, and in a forked child, where its threads are gone and its runtime
/// would wait for them. `run` must not throw.
bool run_on_openmp(int threads, int parts, FunctionRef<void(int part)> run);

}  // namespace fuse
