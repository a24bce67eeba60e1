#include <doctest/doctest.h>

#include <string>

#include "bench/counted_call.h"
#include "bench/own_cache.h"
#include "fusebook/jit/loaded_libraries.h"
#include "fusebook/jit/scratch_directory.h"
#include "fusebook/support/error.h"

using namespace fuse;
using namespace fuse::bench;

namespace {

const JitCounters compiled = {.compiler_runs = 1, .disk_hits = 0};
const JitCounters from_disk = {.compiler_runs = 0, .disk_hits = 1};
const JitCounters from_memory = {};

void build(const char* source) {
  build_library(std::string("extern \"C\" int number() { return ") + source +
                "; }\n");
}

}  // namespace

TEST_CASE("a call that did what its figure stands for is let pass") {
  const ScratchDirectory folder = make_temporary_directory();
  const OwnCache cache(folder.path() + "/kernels");
  const auto one = [] { build("1"); };
  call_counted("cold", compiled, one);
  call_counted("memory", from_memory, one);
  forget_libraries();
  call_counted("disk", from_disk, one);
}

TEST_CASE("a cold figure that a cache answered is refused") {
  const ScratchDirectory folder = make_temporary_directory();
  const OwnCache cache(folder.path() + "/kernels");
  const auto two = [] { build("2"); };
  two();
  CHECK_THROWS_WITH_AS(
      call_counted("cold", compiled, two),
      "'cold' was not measured: expected compiler runs: 1, disk "
      "cache hits: 0; got compiler runs: 0, disk cache hits: 0",
      Error);
  forget_libraries();
  CHECK_THROWS_AS(call_counted("cold", compiled, two), Error);  // from disk
  forget_libraries();
  CHECK_THROWS_AS(call_counted("memory", from_memory, two), Error);
}

TEST_CASE("a figure of the disk cache for which the compiler ran is refused") {
  const ScratchDirectory folder = make_temporary_directory();
  const auto three = [] { build("3"); };
  {
    const OwnCache off("off");
    call_counted("cold", compiled, three);
    forget_libraries();
    CHECK_THROWS_AS(call_counted("disk", from_disk, three), Error);
  }
  forget_libraries();
  const OwnCache cache(folder.path() + "/kernels");
  // What was compiled without a cache is not in it.
  call_counted("cold", compiled, three);
}
