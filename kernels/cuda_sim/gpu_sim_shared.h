#pragma once

#include <span>

namespace fuse {

/// The variables of a simulated kernel that a block shares: `inside` is an address
/// among them. They are local to a thread of the host, and these are the calling
/// thread's.
std::span<char> find_shared_memory(const void* inside);

}  // namespace fuse
