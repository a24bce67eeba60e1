#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Evaluates what depends on constants alone, shares equal nodes, passes over
/// copies of computed values, and drops what no store needs. Values keep their bits: folding runs the very loops
/// that the interpreter runs.
void simplify(Body& body);

/// Drops unused nodes and renumbers the rest.
void drop_dead(Body& body);

}  // namespace fuse
