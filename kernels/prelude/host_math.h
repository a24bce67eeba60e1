#pragma once

#include "fusebook/prelude/math.h"

namespace fuse {

/// The host's libm behind plain function pointers: the one table that prebuilt
/// loops and generated kernels call, so that their bits agree.
extern const Calls host_calls;

}  // namespace fuse
