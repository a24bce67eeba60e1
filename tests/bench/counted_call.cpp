#include "bench/counted_call.h"

#include "fusebook/support/error.h"

namespace fuse::bench {
namespace {

std::string text_of(const JitCounters& counters) {
  return "compiler runs: " + std::to_string(counters.compiler_runs) +
         ", disk cache hits: " + std::to_string(counters.disk_hits);
}

}  // namespace

void call_counted(const std::string& figure, const JitCounters& expected,
                  const std::function<void()>& fn) {
  const JitCounters before = jit_counters();
  fn();
  const JitCounters after = jit_counters();
  const JitCounters spent = {after.compiler_runs - before.compiler_runs,
                             after.disk_hits - before.disk_hits};
  if (spent.compiler_runs == expected.compiler_runs &&
      spent.disk_hits == expected.disk_hits) {
    return;
  }
  throw Error("'" + figure + "' was not measured: expected " +
              text_of(expected) + "; got " + text_of(spent));
}

}  // namespace fuse::bench
