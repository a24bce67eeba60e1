#pragma once

#include <cstdint>

#include "bench/cases.h"

namespace fuse::bench {

/// The variant that the others are divided by.
inline constexpr const char* limit_name = "limit";

/// What all variants of a case may hold together, in bytes; those of a larger one
/// are there one after the other.
inline constexpr std::int64_t most_at_once = std::int64_t(3) << 30;

/// The size of a case's parameters, in bytes.
std::int64_t bytes_of_a_list(const Case& wanted);

/// What measuring a case's steps held at once, as a reading of kind "memory".
inline constexpr const char* peak_name = "peak of a process";

/// Measures every variant of a step of Adam in this process, in turns, and tells
/// a reading of kind "step" for each, divided by the "limit": the fastest of
/// several plain loops that load and store what the step loads and stores.
/// Variants of a large case are there one after the other, each in turns with
/// the limit's loops over its own memory. Throws Error when the case does not fit
/// into memory.
void measure_steps(const Case& wanted);

}  // namespace fuse::bench
