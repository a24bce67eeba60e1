// A program that uses OpenMP: steps run on its threads.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "fusebook/compile/compile.h"
#include "fusebook/optim/adam.h"
#include "fusebook/runtime/parallel.h"
#include "support/step_testing.h"

// From omp.h, which belongs to the compiler; the linter's has none.
extern "C" int omp_in_parallel();
extern "C" int omp_get_thread_num();

using namespace fuse;
using namespace step_testing;

namespace {

constexpr int most = 64;

struct Seen {
  std::atomic<int> runs[most] = {};
  std::atomic<int> on_openmp = 0;
};

void run_parts(int parts, Seen& seen) {
  parallel_run(parts, [&](int part) {
    ++seen.runs[part];
    seen.on_openmp += omp_in_parallel() != 0 ? 1 : 0;
  });
}

void check_once(const Seen& seen, int parts) {
  for (int i = 0; i < most; ++i) CHECK(seen.runs[i] == (i < parts ? 1 : 0));
}

// Parameters after some steps; enough of them for several threads.
std::vector<Tensor> train(int threads) {
  set_thread_count(threads);
  const auto params = make_params({{100000}, {7}, {60001}}, 5);
  Adam adam(params);
  auto step = compile([&] { adam.step(); });
  for (int i = 0; i < 5; ++i) step();
  set_thread_count(0);
  return params;
}

}  // namespace

// Must come first: nothing of ours has run when the program forks.
TEST_CASE("a child forked before our first region does without OpenMP") {
  std::atomic<int> used = 0;
#pragma omp parallel num_threads(3)
  ++used;
  CHECK(used == 3);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // rather than wait for threads that are not there
    Seen seen;
    set_thread_count(3);
    run_parts(6, seen);
    _exit(seen.on_openmp == 0 && seen.runs[5] == 1 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("parts run once each, on OpenMP's threads") {
  for (const int threads : {2, 3, 8}) {
    set_thread_count(threads);
    for (const int parts : {1, 2, 7, most}) {
      Seen seen;
      run_parts(parts, seen);
      check_once(seen, parts);
      CHECK(seen.on_openmp == (parts == 1 ? 0 : parts));
    }
  }
  set_thread_count(0);
}

TEST_CASE("the program's regions before and after are its own") {
  const std::vector<Tensor> expected = train(1);
  for (int round = 0; round < 20; ++round) {
    long sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(2 + round % 3)
    for (int i = 0; i < 10000; ++i) sum += i;
    CHECK(sum == 49995000);
    CHECK(bitwise_equal(train(1 + round % 4), expected));
  }
}

TEST_CASE("steps inside the program's regions run there") {
  const std::vector<Tensor> expected = train(1);
  std::atomic<int> equal = 0;
#pragma omp parallel num_threads(3)
  {
    const auto params = make_params({{100000}, {7}, {60001}}, 5);
    Adam adam(params);
    auto step = compile([&] { adam.step(); });
    for (int i = 0; i < 5; ++i) step();
    equal += bitwise_equal(params, expected) ? 1 : 0;
  }
  CHECK(equal == 3);
}

TEST_CASE("a part that starts a region runs it by itself") {
  set_thread_count(4);
  std::atomic<int> inner = 0;
  parallel_run(4, [&](int) {
    const int outer = omp_get_thread_num();
    parallel_run(
        5, [&](int) { inner += omp_get_thread_num() == outer ? 1 : 100; });
  });
  CHECK(inner == 20);
  set_thread_count(0);
}

TEST_CASE("threads of the program's own may start regions together") {
  set_thread_count(3);
  std::vector<Seen> seen(4);
  std::vector<std::thread> threads;
  for (Seen& mine : seen) {
    threads.emplace_back([&mine] { run_parts(9, mine); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Seen& mine : seen) check_once(mine, 9);
  set_thread_count(0);
}

// GCC's runtime would wait for threads that the child does not have.
TEST_CASE("a forked child does without OpenMP") {
  const std::vector<Tensor> expected = train(2);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Seen seen;
    set_thread_count(2);
    run_parts(6, seen);
    const bool good = seen.on_openmp == 0 && bitwise_equal(train(2), expected);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
