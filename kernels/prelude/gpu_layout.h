#pragma once

// What the host and the generated CUDA text have agreed on. Numbers alone, so
// that whoever writes the text and whoever launches it can both include this.

#include "fusebook/prelude/launch.h"

namespace fuse {

/// Threads of a block.
constexpr int gpu_block = 256;
/// Elements of a chunk; rows are cut at multiples of it.
constexpr i64 gpu_chunk = 4096;
/// So many scalars of a launch travel by value, in the kernel's parameters.
/// Where there are more, all of them lie in device memory, at Launch::args.
constexpr i64 gpu_value_args = 256;

/// The generated text takes its parameters as __grid_constant__, which older
/// devices do not have.
constexpr int oldest_gpu_architecture = 70;

/// The name of the exported kernel:
///   extern "C" __global__ void fuse_kernel(
///       const __grid_constant__ GpuLaunch launch,
///       const __grid_constant__ Arguments arguments);
constexpr const char* gpu_kernel_name = "fuse_kernel";

/// Length of Arguments::value for a plan with so many scalars.
constexpr i64 gpu_argument_count(i64 args) {
  return args == 0 || args > gpu_value_args ? 1 : args;
}

}  // namespace fuse
