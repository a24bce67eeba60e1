#pragma once

#include "bench/cases.h"
#include "bench_gpu/gpu_results.h"

namespace fuse::bench {

/// Measures every variant of a step of Adam on the default device, in turns
/// with a copy within its memory that moves as many bytes. On the simulator
/// only launches are counted. Throws Error where memory does not suffice.
std::vector<GpuStep> measure_gpu_steps(const Case& wanted);

}  // namespace fuse::bench
