#pragma once

#include <string>
#include <vector>

namespace fuse {

/// The levels of this architecture's instruction set that kernels can be
/// compiled ahead for, lowest first: "x86-64", "x86-64-v2", "x86-64-v3" and
/// "x86-64-v4", or "armv8-a". Empty for other architectures.
const std::vector<std::string>& cpu_levels();

/// Those that this CPU runs, highest first.
const std::vector<std::string>& levels_run_here();

}  // namespace fuse
