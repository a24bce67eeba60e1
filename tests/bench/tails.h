#pragma once

#include "bench/cases.h"

namespace fuse::bench {

/// Measures the whole tail of a step, with gradients that are unscaled, checked
/// and clipped, Adam, and an average of the parameters: in one compiled call, pass
/// by pass, and beside loops that move as many bytes. Tells readings of kind
/// "tail". Throws Error when the case does not fit into memory.
void measure_tail(const Case& wanted);

}  // namespace fuse::bench
