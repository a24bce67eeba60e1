#pragma once

// Constants shared by the host and the generated CUDA text. Only numbers, so
// that both the code generator and the launcher can include this.

#include "fusebook/prelude/launch.h"

namespace fuse {

/// Threads per block.
constexpr int gpu_block = 256;
/// Elements per chunk; rows are cut at multiples of it.
constexpr i64 gpu_chunk = 4096;
/// Elements that a block of threads computes at once where lists lie in blocks,
/// unless one of these is larger: `held_size` of gpu_blocks.h.
constexpr i64 gpu_held_size = 1024;
/// A launch passes up to this many scalars by value, in the kernel's
/// parameters. If it has more, all of them are in device memory, at
/// Launch::args.
constexpr i64 gpu_value_args = 256;

/// The generated text takes its parameters as __grid_constant__, which older
/// devices lack.
constexpr int oldest_gpu_architecture = 70;

/// The name of the exported kernel:
///   extern "C" __global__ void fuse_kernel(
///       const __grid_constant__ GpuLaunch launch,
///       const __grid_constant__ Arguments arguments);
constexpr const char* gpu_kernel_name = "fuse_kernel";

/// The length of Arguments::value for a plan with `args` scalars.
constexpr i64 gpu_argument_count(i64 args) {
  return args == 0 || args > gpu_value_args ? 1 : args;
}

}  // namespace fuse
