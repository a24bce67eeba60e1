#pragma once

#include "fusebook/ir/program.h"

namespace fuse {

/// The one number of a list of rate uniform, copied from where it lies: a wait
/// for a GPU. Nothing that is being recorded is run for it.
double read_number(const ListView& list, SlotInfo info);

}  // namespace fuse
