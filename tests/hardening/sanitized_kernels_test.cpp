// In a build with sanitizers the kernels that are compiled at run time are
// sanitized too: each fault ends the program with the sanitizer's report.
#include <doctest/doctest.h>

#include <string>

#include "worker.h"

using namespace hardening;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool threads = true;
#else
constexpr bool threads = false;
#endif

void check_noticed(const std::string& kind, const std::string& report) {
  const TempDir dir;
  Surroundings around;
  around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"}};
  const Outcome outcome = run_worker(around, {"fault", kind});
  CAPTURE(outcome.err);
  CHECK(outcome.code != 0);
  CHECK(contains(outcome.err, report));
}

}  // namespace

TEST_CASE("a kernel that writes beyond its memory" * doctest::skip(threads)) {
  check_noticed("beyond", "heap-buffer-overflow");
}

TEST_CASE("a kernel that reads the rest of a tensor beyond its memory" *
          doctest::skip(threads)) {
  check_noticed("rest", "heap-buffer-overflow");
}

TEST_CASE("a kernel with undefined arithmetic" * doctest::skip(threads)) {
  check_noticed("overflow", "runtime error: signed integer overflow");
}

TEST_CASE("kernels that race" * doctest::skip(!threads)) {
  check_noticed("race", "data race");
}

TEST_CASE("sanitized kernels are kernels of their own in the cache") {
  const TempDir dir;
  Surroundings around;
  around.variables = {{"FUSEBOOK_CACHE_DIR", dir / "cache"}};
  CHECK(run_worker(around, {"step"}).code == 0);
  around.variables.emplace_back("FUSEBOOK_CXX", std::nullopt);
  const Outcome plain = run_worker(around, {"step"});
  CHECK(plain.code == 0);
  CHECK(number_in(plain.out, "compiler_runs") == 1);
  CHECK(names_in(dir / "cache").size() == 2);
}
