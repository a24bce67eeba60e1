#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// The number in a list of rate uniform, copied to the host; waits for a GPU.
/// Does not flush a recording.
double read_number(const ListView& list, SlotInfo info);

}  // namespace fuse
