#pragma once

#include <optional>

#include "fusebook/trace/scalar.h"

namespace fuse {

/// What comes to a step from outside, as numbers that its kernel reads: neither
/// costs a pass over memory. They may be results of the same recording, such as
/// a norm, or 0-d tensors on a GPU: the host never asks for them.
struct StepOptions {
  /// Gradients are divided by it, after their conversion to the dtype of the
  /// parameters; the gradients in memory stay as they are.
  std::optional<Scalar> grad_scale = {};
  /// Unless it is 0, the step changes nothing: no parameter, no state and no
  /// step count, whatever is in the gradients. `steps()` counts it all the same.
  std::optional<Scalar> skip = {};
};

}  // namespace fuse
