#pragma once

#include <span>

#include "fusebook/ir/stored_memory.h"
#include "fusebook/optim_base/joined_batch.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// The memory that the steps of several batches write. Where batches share
/// memory, one reads what another stores, so their order matters.
class BatchMemory {
 public:
  /// Records the memory of these batches. False if they share any, or if one
  /// reads what another writes.
  bool are_apart(std::span<const JoinedBatch> batches);
  /// True if a list overlaps the memory they write.
  bool touches(const TensorList& list);

 private:
  bool touches(const JoinedNumbers& numbers);

  StoredMemory stored_;
};

}  // namespace fuse
