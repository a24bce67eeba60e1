#pragma once

#include <algorithm>
#include <cstdint>

#include "fusebook/runtime/parallel.h"

namespace fuse {

/// Splits [0, count) into at most `thread_count()` ranges of at least `grain`
/// and calls `body(begin, end)` for each of them in parallel. What `body`
/// writes for an index must depend on that index alone, so that results are
/// the same for any number of threads. `body` must not throw.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  struct Work {
    const Body& body;
    std::int64_t count;
    std::int64_t parts;
  };
  const std::int64_t useful = count / std::max<std::int64_t>(grain, 1);
  const Work work{body, count,
                  std::clamp<std::int64_t>(useful, 1, thread_count())};
  const auto run = [](void* context, int part) {
    const Work& mine = *static_cast<const Work*>(context);
    const std::int64_t size = mine.count / mine.parts;
    const std::int64_t extra = mine.count % mine.parts;
    const std::int64_t begin =
        part * size + std::min<std::int64_t>(part, extra);
    mine.body(begin, begin + size + (part < extra ? 1 : 0));
  };
  parallel_run(int(work.parts), run, const_cast<Work*>(&work));
}

}  // namespace fuse
