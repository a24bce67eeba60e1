#pragma once

#include "fusebook/ir/plan.h"

namespace fuse {

/// Checks that no stored tensor overlaps another tensor of the launch. A tensor
/// may be in two lists only at the same index, and only if the second list is
/// not read after the first is stored. Otherwise throws Error naming both
/// tensors. Returns true if such shared tensors exist.
bool check_overlaps(const Plan& plan, const Program& program);

/// True if an early phase alone reads a slot, and the program stores nothing
/// before it does: then it may share memory with whatever is stored.
bool is_read_first(const Plan& plan, const Program& program, std::int32_t slot);

}  // namespace fuse
