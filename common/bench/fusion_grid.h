#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Which launch did which operation on which tensor, found by running a step.
struct FusionGrid {
  std::vector<std::string> operations;           ///< columns
  std::vector<std::vector<std::int64_t>> cells;  ///< [tensor][operation]
  std::int64_t launches = 0;                     ///< Launches of the step.
  std::int64_t bytes = 0;  ///< Bytes they loaded and stored.
};

/// Runs `step` once and traces it. Rows are `params`, which must have
/// gradients; a cell holds the number of the launch, counted from 1. Throws
/// Error when the step does different things to different tensors.
FusionGrid trace_step(const std::vector<Tensor>& params,
                      const std::function<void()>& step);

/// The grid as text. Of more than `most_rows` tensors the middle is left out.
std::string to_string(const FusionGrid& grid, std::size_t most_rows = 4);

}  // namespace fuse
