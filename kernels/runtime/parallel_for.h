#pragma once

#include <algorithm>
#include <cstdint>

#include "fusebook/runtime/parallel.h"

namespace fuse {

/// Splits [0, count) into at most `thread_count()` ranges of at least `grain`
/// and calls `body(begin, end)` for each of them in parallel. What `body`
/// writes for an index must depend only on that index, so that results are the
/// same for any number of threads. `body` must not throw.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t useful = count / std::max<std::int64_t>(grain, 1);
  const auto parts = std::clamp<std::int64_t>(useful, 1, thread_count());
  const std::int64_t size = count / parts;
  const std::int64_t extra = count % parts;
  parallel_run(int(parts), [&](int part) {
    const std::int64_t begin =
        part * size + std::min<std::int64_t>(part, extra);
    body(begin, begin + size + (part < extra ? 1 : 0));
  });
}

}  // namespace fuse
