#pragma once

#include "device.h"

namespace fuse {

// What a generated GPU kernel and the code that launches it agree on:
// `fuse_kernel(GpuLaunch launch, Arguments arguments)`, where `Arguments` is
// `struct { double value[max(1, args)]; }`, or one double where the launch has
// more than `gpu_value_args` of them: they are then in `launch.table.args`.

/// Threads of a block.
inline constexpr int gpu_block = 256;
/// Elements that a block updates at a time: a row is cut at multiples of this.
inline constexpr i64 gpu_chunk = 4096;
/// So many scalars of a launch go by value, as parameters of the kernel.
inline constexpr int gpu_value_args = 256;

}  // namespace fuse
