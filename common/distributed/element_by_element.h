#pragma once

#include <cstdint>

#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// What a recording of an optimizer's step shows.
struct RecordedStep {
  /// Each element is updated by itself, so that a part of a tensor may be updated
  /// elsewhere: nothing reduces elements or breaks the recording.
  bool is_by_element = false;
  std::uint64_t hash = 0;  ///< of its operations, up to the first break
};

/// Records a step of small tensors of the same kinds as the parameters. Nothing is
/// run and nothing changes; hooks of the step are called.
RecordedStep record_step(Optimizer& optimizer);

}  // namespace fuse
