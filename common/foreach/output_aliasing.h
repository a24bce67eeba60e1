#pragma once

#include <span>

#include "fusebook/foreach/map_element.h"
#include "fusebook/trace/operands.h"

namespace fuse {

/// Checks that no tensor of an output overlaps another tensor of the outputs,
/// or of the operands that the results are computed from, except for exactly
/// the same memory at the same position. Throws Error naming both and the
/// place.
void check_overlap(const Callee& callee, Operands operands,
                   std::span<const Element> results);

}  // namespace fuse
