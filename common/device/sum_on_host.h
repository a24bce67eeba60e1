#pragma once

#include "fusebook/prelude/sums.h"

namespace fuse {

/// Number of chunks that the elements are cut into.
constexpr i64 chunk_count(const SumWork& work) {
  return (work.count + work.chunk - 1) / work.chunk;
}

/// Sums chunks in host memory, on all threads.
void sum_on_host(const SumWork& work);

}  // namespace fuse
