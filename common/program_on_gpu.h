#pragma once

#include "program.h"

namespace fuse {

/// Runs a program over lists in the memory of a GPU, at once, also while a
/// function is being recorded: what the library does to tensors beside the
/// operations of its user. Neither a launch in the counters nor part of a trace.
/// Kernels and tables are kept for the next time. Numbers must be arguments.
void run_on_gpu(const Program& program);

}  // namespace fuse
