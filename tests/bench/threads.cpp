#include "bench/threads.h"

#include <chrono>
#include <string>
#include <thread>

#include "bench/median_after.h"
#include "bench/reading.h"
#include "fusebook/bench/benchmark.h"
#include "fusebook/runtime/parallel.h"

namespace fuse::bench {
namespace {

void empty_region() {
  parallel_run(thread_count(), [](int) {});
}

void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace

void measure_threads() {
  const std::string name = std::to_string(thread_count()) + " threads";
  const double warm = blocked_autorange(empty_region).median_us();
  tell({"host", name, "region, back to back", warm});
  tell({"host", name, "region, after 1 ms idle",
        median_after(pause, empty_region) * 1e6});
}

}  // namespace fuse::bench
