#pragma once

#include <memory>

#include "fusebook/device/backend.h"

namespace fuse {

/// The host: its memory, and kernels compiled by its compiler, or interpreted
/// if there is none, with one note per process.
std::unique_ptr<DeviceBackend> make_cpu_backend();

}  // namespace fuse
