#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Evaluates constant expressions, shares equal nodes, skips copies of computed
/// values, and drops what no store needs. Values keep their bits: folding runs
/// the same loops as the interpreter.
void simplify(Body& body);

/// Drops unused nodes and renumbers the rest.
void drop_dead(Body& body);

}  // namespace fuse
