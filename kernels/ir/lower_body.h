#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Lowers a source to a body: scalars where they were assigned, constants
/// folded, common subexpressions shared, no dead code.
Body lower_body(const BodySource& source);

}  // namespace fuse
