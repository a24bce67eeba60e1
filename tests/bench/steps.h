#pragma once

#include "bench/cases.h"

namespace fuse::bench {

/// Variants whose name begins so are loops that only move memory: the fastest
/// of them is the limit.
inline constexpr const char* limit_prefix = "limit, ";

/// Measures every variant of a step of Adam in this process, in random order,
/// and tells a reading of kind "step" for each. Throws Error when the case does
/// not fit into memory.
void measure_steps(const Case& wanted);

}  // namespace fuse::bench
