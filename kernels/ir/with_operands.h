#pragma once

#include <vector>

#include "fusebook/ir/program.h"

namespace fuse {

/// These values, and all that they are computed from. One flag for each node of
/// the program, or for its first ones.
std::vector<bool> with_operands(const Program& program,
                                std::vector<bool> values);

}  // namespace fuse
