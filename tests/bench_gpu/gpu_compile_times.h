#pragma once

#include "bench/cases.h"
#include "bench_gpu/gpu_results.h"

namespace fuse::bench {

/// Measures what compiling a step of Adam over as many tensors as the case has
/// costs, small ones: "cold" with the disk cache off, and from the "disk",
/// where a folder of its own serves as the cache. Both are proven by the
/// compiler's own counters. On the simulator the times are left out.
std::vector<GpuCompile> measure_gpu_compile_times(const Case& wanted);

}  // namespace fuse::bench
