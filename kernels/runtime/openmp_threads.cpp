#include "fusebook/runtime/openmp_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace fuse {
namespace {

// The function that compilers call for `#pragma omp parallel`. GCC's runtime
// has it; LLVM's and Intel's provide it for programs compiled with GCC.
using Parallel = void (*)(void (*body)(void*), void* data, unsigned threads,
                          unsigned flags);

std::atomic<bool> forked = false;

struct OpenMPRegion {
  std::atomic<int> next = 0;
  int parts;
  FunctionRef<void(int part)> run;
};

// Each thread of the team takes parts until none is left, however many threads
// the runtime provides.
void take_parts(void* data) {
  OpenMPRegion& region = *static_cast<OpenMPRegion*>(data);
  for (;;) {
    const int part = region.next.fetch_add(1, std::memory_order_relaxed);
    if (part >= region.parts) return;
    region.run(part);
  }
}

// Runs before main(): the program may use OpenMP, and fork, before our first
// region.
[[maybe_unused]] const int watching =
    pthread_atfork(nullptr, nullptr, [] { forked.store(true); });

Parallel find_parallel() {
  return reinterpret_cast<Parallel>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
}

}  // namespace

bool run_on_openmp(int threads, int parts, FunctionRef<void(int part)> run) {
  static const Parallel parallel = find_parallel();
  if (parallel == nullptr || forked.load(std::memory_order_relaxed)) {
    return false;
  }
  OpenMPRegion region{.parts = parts, .run = run};
  parallel(take_parts, &region, unsigned(threads), 0);
  return true;
}

}  // namespace fuse
