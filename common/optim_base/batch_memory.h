#pragma once

#include <span>

#include "fusebook/ir/stored_memory.h"
#include "fusebook/optim_base/joined_batch.h"
#include "fusebook/tensor/tensor_list.h"

namespace fuse {

/// The memory that the steps of several batches write. Where they share some,
/// what one stores is what the next one reads, and their order counts.
class BatchMemory {
 public:
  /// Takes over the memory of these batches. False where they share some, or
  /// read what they write.
  bool are_apart(std::span<const JoinedBatch> batches);
  /// True when a list has a byte of what they write.
  bool touches(const TensorList& list);

 private:
  bool touches(const JoinedNumbers& numbers);

  StoredMemory stored_;
};

}  // namespace fuse
