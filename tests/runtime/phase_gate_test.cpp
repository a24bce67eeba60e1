#include "fusebook/runtime/phase_gate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "fusebook/runtime/parallel.h"

using fuse::parallel_run;
using fuse::PhaseGate;
using fuse::set_thread_count;

TEST_CASE("no part begins before the phase ahead of it has ended") {
  constexpr std::array parts = {5, 1, 12, 3};
  for (const int threads : {1, 2, 3, 8, 32}) {
    set_thread_count(threads);
    for (int turn = 0; turn < 200; ++turn) {
      PhaseGate gate;
      std::array<std::atomic<int>, 4> done{};
      std::atomic<int> early = 0;
      std::atomic<int> last = 0;
      parallel_run(21, [&](int number) {
        int phase = 0;
        for (int first = parts[0]; number >= first;) {
          first += parts[std::size_t(++phase)];
        }
        gate.wait_for(phase);
        for (int before = 0; before < phase; ++before) {
          const auto p = std::size_t(before);
          if (done[p].load() != parts[p]) ++early;
        }
        ++done[std::size_t(phase)];
        if (!gate.finish(parts[std::size_t(phase)])) return;
        ++last;
        gate.open(phase + 1);
      });
      CHECK(early == 0);
      CHECK(last == 4);
      gate.reset();
    }
  }
  set_thread_count(0);
}
