#pragma once

#include <vector>

#include "bench/summary.h"

namespace fuse::bench {

/// Compares what was measured with what the book promises, prints a line for
/// each promise whose rows are there, and returns whether all hold. A promise
/// may be missed by `slack` of itself (0.1: a tenth).
bool check_promises(const std::vector<Row>& rows, double slack);

}  // namespace fuse::bench
