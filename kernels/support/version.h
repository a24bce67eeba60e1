#pragma once

// An installed copy has one more header, which refuses to link a program with a
// library of other headers.
#if __has_include("fusebook/support/headers.h")
#include "fusebook/support/headers.h"
#endif

namespace fuse {

/// The version of the library that the program is linked with: "0.1.0".
const char* version();

}  // namespace fuse
