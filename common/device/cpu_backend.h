#pragma once

#include <memory>

#include "fusebook/device/backend.h"

namespace fuse {

/// The host: its memory, and kernels that are compiled by its compiler, or
/// interpreted where there is none, which is said once in a process.
std::unique_ptr<DeviceBackend> make_cpu_backend();

}  // namespace fuse
