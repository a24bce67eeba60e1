#pragma once

#include "fusebook/trace/recorder.h"

namespace fuse {

/// Runs a recorded program as eager mode does: one operation after another,
/// each with its result in memory. `eager` gets programs of one operation.
/// Results are bit-identical to the fused program. Throws Error, before
/// anything has changed, if a stored tensor overlaps another one.
void replay(const Program& program, Executor& eager);

}  // namespace fuse
