#pragma once

#include "fusebook/support/function_ref.h"

namespace fuse {

/// Number of threads a launch uses: `set_thread_count` if called, else the
/// environment variable FUSEBOOK_THREADS, else the CPUs this process may run on
/// (its affinity). Throws UsageError if FUSEBOOK_THREADS is not an integer from
/// 1 to 1024.
int thread_count();

/// Overrides the number of threads; 0 returns to the default.
/// Throws UsageError outside 0..1024.
void set_thread_count(int count);

/// Calls `run(part)` once for every part in [0, parts), on the calling
/// thread and on pool threads, and returns when all are done. `run` must not
/// throw. One parallel region at a time: a call from inside a region, or while
/// another thread holds the pool, runs its parts one after the other on the
/// calling thread. In a program that uses OpenMP the pool is OpenMP's.
void parallel_run(int parts, FunctionRef<void(int part)> run);

}  // namespace fuse
