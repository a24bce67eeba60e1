#pragma once

#include "fusebook/trace/recorder.h"

namespace fuse {

/// Runs a recorded program as eager mode does: one operation after the other,
/// each with its result in memory. `eager` gets programs of one operation.
/// Stores to the bits of the fused program. Throws Error when a stored tensor
/// overlaps another one, before anything has changed.
void replay(const Program& program, Executor& eager);

}  // namespace fuse
