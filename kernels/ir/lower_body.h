#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// The body that is made from a source: scalars in the place that is chosen for
/// them, constants folded, common subexpressions shared, no dead code.
Body lower_body(const BodySource& source);

}  // namespace fuse
