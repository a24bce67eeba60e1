#pragma once

#include <functional>
#include <source_location>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/operands.h"

namespace fuse {

/// Runs list operations without stores or launches: throws what they would
/// throw one by one, before anything has changed. Stops early and returns false
/// if the operations need a value that only a launch can give.
///
/// Whether a stored list overlaps an operand is checked only if `is_new` is
/// true for one of the lists: it is the slowest check, and lists once found
/// apart stay apart.
bool rehearse(const std::function<void()>& operations,
              const std::function<bool(const ListImpl&)>& is_new);

}  // namespace fuse
