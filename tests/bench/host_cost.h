#pragma once

#include <cstddef>

namespace fuse::bench {

/// Measures what a compiled step of Adam over `tensors` tensors does beside
/// launching its kernel, and tells readings of kind "host": "recording" (the
/// step run under the recorder), "guards" (finding the kernel that fits) and
/// "binding" (looking whether the table still holds, reading the scalars).
void measure_host_cost(std::size_t tensors);

}  // namespace fuse::bench
