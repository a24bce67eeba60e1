#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// Runs a program over lists of one device at once, also while a function is
/// being recorded: what the library does to tensors beside the operations of its
/// user. Neither a launch in the counters nor part of a trace. Kernels and tables
/// are kept for the next time. Numbers must be arguments; pending work on the
/// tensors is not run.
void run_at_once(const Program& program);

}  // namespace fuse
