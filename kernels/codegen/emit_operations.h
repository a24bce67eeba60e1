#pragma once

#include <string>

#include "fusebook/ir/plan.h"

namespace fuse {

/// The functions of all operations that a plan uses.
std::string operations_text(const Plan& plan);

/// What the bodies that run in lanes need of them besides.
std::string lane_operations_text(const Plan& plan);

}  // namespace fuse
