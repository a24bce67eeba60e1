#pragma once

#include <cstdint>

#include "bench_gpu/gpu_results.h"

namespace fuse::bench {

/// Takes compiled steps of Adam over one tensor of more than 2^31 elements,
/// fewer by `scale`, and looks whether places at its begin, about 2^31 and at
/// its end were updated as the CPU updates them. Throws Error where memory does
/// not suffice.
GpuReach check_beyond_int(std::int64_t scale);

}  // namespace fuse::bench
