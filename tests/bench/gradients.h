#pragma once

#include "bench/cases.h"

namespace fuse::bench {

/// Measures a compiled step of Adam whose gradients come and go as training
/// loops have it, and tells readings of kind "gradients", divided by the bare
/// kernel. Making gradients and putting them in place is not timed: only the
/// step that finds them. Throws Error when the case does not fit into memory.
void measure_gradients(const Case& wanted);

}  // namespace fuse::bench
