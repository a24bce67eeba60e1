#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// Which launch did which operation on which tensor, found by running a step.
struct FusionGrid {
  std::vector<std::string> operations;           ///< in the order of the step
  std::vector<std::vector<std::int64_t>> cells;  ///< [tensor][operation]
  std::int64_t launches = 0;  ///< Number of launches in the step.
  std::int64_t bytes = 0;     ///< Bytes loaded and stored by them.
};

/// Runs `step` once and traces it. The tensors are `params`, which must have
/// gradients; a cell holds the number of the launch, starting from 1. Throws
/// Error if the step does different operations on different tensors.
FusionGrid trace_step(const std::vector<Tensor>& params,
                      const std::function<void()>& step);

/// The grid as text, tensors across and operations down. With more than
/// `most_tensors` of them, the middle ones are omitted.
std::string to_string(const FusionGrid& grid, std::size_t most_tensors = 4);

}  // namespace fuse
