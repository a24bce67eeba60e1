#pragma once

#include <cstdint>

namespace fuse::bench {

/// Median seconds the host compiler takes for an empty source and for the
/// kernel of Adam over a list of `tensors` tensors; caches are not used.
struct CompileTimes {
  double empty = 0;
  double few_tensors = 0;   ///< 10
  double many_tensors = 0;  ///< 10,000
};
CompileTimes measure_compile_times();

}  // namespace fuse::bench
