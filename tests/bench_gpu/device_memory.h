#pragma once

#include <cstdint>

namespace fuse::bench {

/// Throws Error unless the default device has so many bytes of memory.
void require_device_memory(std::int64_t bytes);

}  // namespace fuse::bench
