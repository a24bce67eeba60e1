#pragma once

#include <vector>

#include "bench/cases.h"

namespace fuse::bench {

/// What is measured on a GPU. `scale` above 1 makes everything smaller, for
/// the simulator and for tools that slow a program down: tensors have that
/// many times fewer elements, and lists at most 20 tensors.
std::vector<Case> gpu_cases(std::int64_t scale);

/// Elements of all tensors of a case.
std::int64_t elements_of(const Case& wanted);

}  // namespace fuse::bench
