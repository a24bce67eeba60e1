#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/optim_base/batch.h"
#include "fusebook/optim_base/joined_numbers.h"

namespace fuse {

/// A batch, with the groups its tensors come from.
struct JoinedBatch {
  Batch batch;
  std::vector<std::size_t> groups;  ///< in ascending order
  std::vector<std::size_t> params;  ///< indices among all parameters
  JoinedNumbers numbers;            ///< numbers of several groups; none for one
  bool is_new = true;               ///< not rehearsed yet
  std::uint64_t rehearsed = 0;  ///< content hash of the gradients at the time
  std::uint64_t followed = 0;   ///< likewise; others may move the list, too
};

}  // namespace fuse
