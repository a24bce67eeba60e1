#include "fusebook/runtime/parallel.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fusebook/support/error.h"
#include "support/jit_testing.h"
#include "support/thread_count.h"

// The thread sanitizer cannot follow threads that a forked child starts.
#if defined(__SANITIZE_THREAD__)
constexpr bool cannot_fork = true;
#else
constexpr bool cannot_fork = false;
#endif

using namespace jit_testing;
using testing::Threads;

namespace {

template <class Body>
void for_parts(int parts, Body body) {
  fuse::parallel_run(parts, body);
}

long thread_id() { return syscall(SYS_gettid); }

// What all threads of this process have used.
double cpu_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

// Every part waits until all have begun: it ends only if each part has a thread
// of its own.
void meet(int parts) {
  std::atomic<int> arrived = 0;
  for_parts(parts, [&](int) {
    ++arrived;
    while (arrived < parts) std::this_thread::yield();
  });
  CHECK(arrived == parts);
}

// One line of the status of each pool thread.
std::vector<std::string> worker_status(const std::string& field) {
  std::vector<std::string> lines;
  for (const std::string& task : names_in("/proc/self/task")) {
    const std::string folder = "/proc/self/task/" + task;
    if (!read_text(folder + "/comm").starts_with("fusebook-")) continue;
    const std::string status = read_text(folder + "/status");
    const std::size_t begin = status.find("\n" + field + ":") + 1;
    lines.push_back(status.substr(begin, status.find('\n', begin) - begin));
  }
  return lines;
}

bool all_asleep() {
  for (const std::string& line : worker_status("State")) {
    if (line.find("S (sleeping)") == line.npos) return false;
  }
  return true;
}

// Workers sleep some microseconds after the last region.
void wait_until_asleep() {
  for (int i = 0; i < 1000 && !all_asleep(); ++i) usleep(10000);
  CHECK(all_asleep());
}

}  // namespace

TEST_CASE("each part runs exactly once") {
  for (const int threads : {1, 2, 3, 8, 64}) {
    const Threads scope(threads);
    for (const int parts : {0, 1, 2, 7, 1000}) {
      CAPTURE(threads);
      CAPTURE(parts);
      for (int round = 0; round < 20; ++round) {
        // Plain integers: each is written by one part and read after the end.
        std::vector<int> runs(std::size_t(parts), 0);
        for_parts(parts, [&](int part) { ++runs[std::size_t(part)]; });
        CHECK(runs == std::vector<int>(std::size_t(parts), 1));
      }
    }
  }
}

TEST_CASE("a negative number of parts is none") {
  const Threads scope(2);
  bool ran = false;
  for_parts(-3, [&](int) { ran = true; });
  CHECK_FALSE(ran);
}

TEST_CASE("thousands of regions in a row lose nothing") {
  for (const int threads : {2, 8}) {
    const Threads scope(threads);
    std::vector<long> sums(std::size_t(threads) * 16, 0);
    for (int i = 0; i < 5000; ++i) {
      for_parts(threads, [&](int part) { sums[std::size_t(part) * 16] += i; });
    }
    for (int part = 0; part < threads; ++part) {
      CHECK(sums[std::size_t(part) * 16] == 5000L * 4999 / 2);
    }
  }
}

TEST_CASE("parts run at the same time, on awake and on sleeping workers") {
  for (const int threads : {2, 3, 8, 64}) {
    const Threads scope(threads);
    meet(threads);
    meet(threads);
    wait_until_asleep();
    meet(threads);
  }
}

TEST_CASE("workers late for one region wake the others for the next") {
  for (int round = 0; round < 300; ++round) {
    const int threads = 2 + round % 7;
    const Threads scope(threads);
    std::atomic<int> runs = 0;
    for_parts(threads + round % 5, [&](int) { ++runs; });
    meet(threads);
    CHECK(runs == threads + round % 5);
  }
}

TEST_CASE("an idle pool sleeps, and its threads take no signals") {
  const Threads scope(4);
  meet(4);
  wait_until_asleep();
  const auto blocked = worker_status("SigBlk");
  CHECK(blocked.size() >= 3);
  for (const std::string& line : blocked) {
    const auto mask = std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
    CHECK((mask >> (SIGINT - 1) & 1) == 1);
    CHECK((mask >> (SIGTERM - 1) & 1) == 1);
  }
}

TEST_CASE("an idle pool uses no CPU, however often it was woken") {
  const Threads scope(4);
  constexpr double pause = 0.3;
  meet(4);
  usleep(10000);  // workers look for more for a moment
  const double before_pause = cpu_seconds();
  usleep(useconds_t(pause * 1e6));
  CHECK(cpu_seconds() - before_pause < pause / 10);
  // A region now and then: at most a moment's looking after each.
  const double before_regions = cpu_seconds();
  for (int i = 0; i < 30; ++i) {
    for_parts(4, [](int) {});
    usleep(10000);
  }
  CHECK(cpu_seconds() - before_regions < 0.1);
}

TEST_CASE("no more threads take part than asked for") {
  {
    const Threads more(8);
    meet(8);
  }
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<long> ids(100, 0);
      for_parts(100, [&](int part) { ids[std::size_t(part)] = thread_id(); });
      CHECK(ids[0] == thread_id());
      CHECK(std::set<long>(ids.begin(), ids.end()).size() <=
            std::size_t(threads));
    }
  }
}

TEST_CASE("a call from inside a region runs in order on its thread") {
  const Threads scope(4);
  std::atomic<int> right = 0;
  for_parts(8, [&](int) {
    const long outer = thread_id();
    std::vector<int> order;
    bool same_thread = true;
    for_parts(5, [&](int part) {
      order.push_back(part);
      same_thread = same_thread && thread_id() == outer;
    });
    if (same_thread && order == std::vector<int>{0, 1, 2, 3, 4}) ++right;
  });
  CHECK(right == 8);
  meet(4);
}

TEST_CASE("callers on several threads each get all of their parts") {
  const Threads scope(3);
  std::atomic<long> total = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        std::vector<int> runs(7, 0);
        for_parts(7, [&](int part) { ++runs[std::size_t(part)]; });
        for (const int count : runs) total += count;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 4 * 500 * 7);
}

TEST_CASE("a second caller runs its parts itself while the pool is taken") {
  const Threads scope(2);
  std::atomic<int> inside = 0;
  std::atomic<bool> release = false;
  std::thread first([&] {
    for_parts(2, [&](int) {
      ++inside;
      while (!release) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  std::set<long> ids;
  for_parts(50, [&](int) { ids.insert(thread_id()); });
  CHECK(ids == std::set<long>{thread_id()});
  release = true;
  first.join();
}

TEST_CASE("the number of threads may change between regions") {
  for (int i = 0; i < 60; ++i) {
    const int threads = 1 + (i * 7) % 13;
    const Threads scope(threads);
    CHECK(fuse::thread_count() == threads);
    std::atomic<int> runs = 0;
    for_parts(29, [&](int) { ++runs; });
    CHECK(runs == 29);
    meet(threads);
  }
}

TEST_CASE("a forked child starts a pool of its own" *
          doctest::skip(cannot_fork)) {
  const Threads scope(4);
  meet(4);
  for (const bool asleep : {false, true}) {
    if (asleep) wait_until_asleep();
    CHECK(run_child([] {
            std::vector<int> runs(1000, 0);
            for_parts(1000, [&](int part) { ++runs[std::size_t(part)]; });
            std::atomic<int> arrived = 0;
            for_parts(4, [&](int) {
              ++arrived;
              while (arrived < 4) std::this_thread::yield();
            });
            return runs == std::vector<int>(1000, 1) ? 0 : 1;
          }) == 0);
  }
  meet(4);
}

TEST_CASE("a child forked while another thread uses the pool is not stuck" *
          doctest::skip(cannot_fork)) {
  const Threads scope(3);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) for_parts(3, [](int) {});
  });
  for (int i = 0; i < 10; ++i) {
    CHECK(run_child([] {
            std::atomic<int> runs = 0;
            for_parts(100, [&](int) { ++runs; });
            return runs == 100 ? 0 : 1;
          }) == 0);
  }
  stop = true;
  busy.join();
}

TEST_CASE("a process leaves cleanly with workers, and runs regions at exit" *
          doctest::skip(cannot_fork)) {
  const Threads scope(4);
  CHECK(run_child([] {
          for_parts(4, [](int) {});
          std::atexit([] {
            std::atomic<int> runs = 0;
            for_parts(9, [&](int) { ++runs; });
            if (runs != 9) _exit(1);
          });
          std::exit(0);
          return 2;
        }) == 0);
}

TEST_CASE("FUSEBOOK_THREADS sets the default") {
  for (const char* const text : {"1", "5", "1024"}) {
    const Env env("FUSEBOOK_THREADS", text);
    fuse::set_thread_count(0);
    CHECK(fuse::thread_count() == std::stoi(text));
  }
  {
    const Env env("FUSEBOOK_THREADS", "5");
    const Threads scope(2);
    CHECK(fuse::thread_count() == 2);
  }
  fuse::set_thread_count(0);
}

TEST_CASE("a FUSEBOOK_THREADS that is no number of threads is an error") {
  for (const char* const text :
       {"0", "-1", "1025", "two", "2x", " 2", "1.5", "99999999999999999999"}) {
    CAPTURE(text);
    const Env env("FUSEBOOK_THREADS", text);
    fuse::set_thread_count(0);
    std::string message;
    try {
      fuse::thread_count();
    } catch (const fuse::UsageError& error) {
      message = error.what();
    }
    CHECK(message.find("FUSEBOOK_THREADS is '" + std::string(text) + "'") !=
          message.npos);
    CHECK(message.find("1 to 1024") != message.npos);
    CHECK_THROWS_AS(for_parts(2, [](int) {}), fuse::UsageError);
  }
  const Env env("FUSEBOOK_THREADS", "");
  fuse::set_thread_count(0);
  CHECK(fuse::thread_count() >= 1);
}

TEST_CASE("the default follows the CPUs this process may run on") {
  const Env env("FUSEBOOK_THREADS", nullptr);
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  fuse::set_thread_count(0);
  CHECK(fuse::thread_count() == CPU_COUNT(&all));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && CPU_COUNT(&one) == 0) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  fuse::set_thread_count(0);
  CHECK(fuse::thread_count() == 1);
  {
    // All threads started from here share one CPU: nobody may spin for ever.
    const Threads scope(3);
    std::atomic<int> runs = 0;
    for (int i = 0; i < 100; ++i) for_parts(3, [&](int) { ++runs; });
    CHECK(runs == 300);
  }
  REQUIRE(sched_setaffinity(0, sizeof(all), &all) == 0);
  fuse::set_thread_count(0);
}

TEST_CASE("set_thread_count refuses what it cannot do") {
  CHECK_THROWS_AS(fuse::set_thread_count(-1), fuse::UsageError);
  CHECK_THROWS_AS(fuse::set_thread_count(1025), fuse::UsageError);
}
