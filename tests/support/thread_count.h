#pragma once

#include "fusebook/runtime/parallel.h"

namespace testing {

/// The number of threads for one test case; the default comes back at its end.
struct Threads {
  explicit Threads(int count) { fuse::set_thread_count(count); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { fuse::set_thread_count(0); }
};

}  // namespace testing
