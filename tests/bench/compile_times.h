#pragma once

#include <cstddef>

namespace fuse::bench {

/// Measures the first call of a new compiled step of Adam over `tensors`
/// tensors and tells readings of kind "compile": "cold" (the host compiler
/// runs), "disk" (from the kernel cache on disk) and "memory" (the process has
/// the kernel already); for comparison "empty", the host compiler alone on an
/// empty source. The disk cache is an empty one of its own. Throws Error when a
/// call was answered by something else than its name says.
void measure_compile_times(std::size_t tensors);

/// Tells "first step, from disk": what the first compiled step of this process
/// costs beyond its second one, over ten tensors. Nothing is told unless the
/// user's disk cache had the kernel; it has it the next time.
void measure_first_step();

}  // namespace fuse::bench
