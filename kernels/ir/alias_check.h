#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Checks that no stored tensor overlaps another tensor of the launch. A tensor
/// may stand in two lists only at the same place, and only if the second list
/// is not read any more once the first was stored. Throws Error naming both
/// tensors otherwise. Returns true when such shared tensors exist.
bool check_overlaps(const Plan& plan, const Program& program);

}  // namespace fuse
