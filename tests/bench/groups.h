#pragma once

namespace fuse::bench {

/// Measures compiled steps of Adam over 10,000 tensors of 64 in one, a hundred
/// and 10,000 parameter groups, each with a rate of its own, and tells readings
/// of kind "groups", divided by the bare kernel for one group. Where a rate is
/// "moved", a schedule has given every group another one before the step, which
/// is not timed. Also tells what the first call of a compiled step costs that
/// finds its kernel in the process's memory.
void measure_groups();

}  // namespace fuse::bench
