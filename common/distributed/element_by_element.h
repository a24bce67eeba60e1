#pragma once

#include "fusebook/optim_base/optimizer.h"

namespace fuse {

/// True if an optimizer updates each element by itself, so that a part of a
/// tensor may be updated elsewhere: its step is recorded for small tensors of
/// the same kinds, and nothing in it reduces elements or breaks the recording.
/// Nothing is run and nothing changes; hooks of the step are called.
bool works_element_by_element(Optimizer& optimizer);

}  // namespace fuse
