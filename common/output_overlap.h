#pragma once

#include "list_checks.h"

namespace fuse {

/// Checks that no tensor of an output overlaps another tensor of the operands,
/// except the very same memory at the same position. Throws Error naming both
/// and the place.
void check_overlap(const Callee& callee, Operands operands);

}  // namespace fuse
