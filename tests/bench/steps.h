#pragma once

#include "bench/cases.h"

namespace fuse::bench {

/// The variant that the others are divided by.
inline constexpr const char* limit_name = "limit";

/// Measures every variant of a step of Adam in this process, in random order,
/// and tells a reading of kind "step" for each, divided by the "limit". Throws
/// Error when the case does not fit into memory.
void measure_steps(const Case& wanted);

}  // namespace fuse::bench
