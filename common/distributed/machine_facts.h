#pragma once

#include <string>
#include <vector>

namespace fuse {

/// What ranks must have in common beside their program: the version of the
/// library, and what the machine's C library computes.
std::vector<std::string> machine_facts();

}  // namespace fuse
