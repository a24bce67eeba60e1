#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fusebook/optim_base/batch.h"
#include "fusebook/optim_base/joined_numbers.h"

namespace fuse {

/// A batch with the groups that its tensors are from.
struct JoinedBatch {
  Batch batch;
  std::vector<std::size_t> groups;  ///< in ascending order
  std::vector<std::size_t> params;  ///< where they stand among all parameters
  JoinedNumbers numbers;            ///< of several groups; none for one
  bool is_new = true;               ///< since it was rehearsed
  std::uint64_t rehearsed = 0;      ///< where the gradients were then
};

}  // namespace fuse
