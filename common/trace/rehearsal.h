#pragma once

#include <functional>
#include <source_location>

#include "fusebook/tensor/tensor_list.h"
#include "fusebook/trace/operands.h"

namespace fuse {

/// Does list operations without a store or a launch: throws what they would
/// throw one by one, while nothing has changed yet. Ends early, and returns
/// false, where the operations need a value that only a launch can give.
///
/// Whether a list that is stored overlaps an operand is looked at only where
/// `is_new` says so of one of the lists: that takes longest, and lists that were
/// apart once stay apart.
bool rehearse(const std::function<void()>& operations,
              const std::function<bool(const ListImpl&)>& is_new);

}  // namespace fuse
