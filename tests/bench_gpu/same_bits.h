#pragma once

#include "bench/cases.h"
#include "bench_gpu/gpu_results.h"

namespace fuse::bench {

/// Compares three compiled steps of Adam on the default device with eager ones
/// there and on the CPU, over the first tensors of a case, the large ones cut.
GpuBits compare_bits(const Case& wanted);

}  // namespace fuse::bench
