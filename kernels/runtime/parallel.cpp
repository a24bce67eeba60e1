#include "fusebook/runtime/parallel.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fusebook/runtime/openmp_threads.h"
#include "fusebook/runtime/pause_cpu.h"
#include "fusebook/support/error.h"

// Nothing in this file owns memory or has a destructor, and the threads are
// detached: a process may call exit() while workers sleep or spin.

namespace fuse {
namespace {

constexpr int max_threads = 1024;
using Clock = std::chrono::steady_clock;
// How long a worker polls for the next region before it sleeps.
constexpr auto spin_time = std::chrono::microseconds(80);
// How long a caller polls for the last parts before it sleeps.
constexpr auto wait_time = std::chrono::microseconds(200);

int count_cpus() {
  // The kernel rejects a mask smaller than its own.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return CPU_COUNT_S(bytes, mask.data());
    }
    if (errno != EINVAL) break;
  }
  return 1;
}

bool parse_count(std::string_view text, int* count) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *count);
  return error == std::errc() && rest == end && *count >= 1 &&
         *count <= max_threads;
}

int default_thread_count(int cpus) {
  const char* const text = std::getenv("FUSEBOOK_THREADS");
  if (text == nullptr || *text == '\0') {
    return cpus < max_threads ? cpus : max_threads;
  }
  int count = 0;
  if (parse_count(text, &count)) return count;
  throw UsageError(fmt::format(
      "FUSEBOOK_THREADS is '{}', which is not an integer from 1 to {}: set it "
      "to the number of threads to use, or unset it to use every CPU this "
      "process may run on",
      text, max_threads));
}

std::atomic<int> chosen_count = 0;   // set by set_thread_count; 0: not set
std::atomic<int> default_count = 0;  // 0: not determined yet
std::atomic<int> cpu_count = 0;      // 0: not determined yet

int cpus() {
  int count = cpu_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = count_cpus();
    cpu_count.store(count, std::memory_order_relaxed);
  }
  return count;
}

// Work that can be claimed: how many threads may take part (high half) and how
// many parts are unclaimed (low half). A single word, so that a claim can never
// mix two regions: a thread that decrements it owns a part of the region
// published with it, and that region cannot end before the part is done.
using Offer = std::uint64_t;
constexpr Offer make_offer(int threads, int parts) {
  return (Offer(std::uint32_t(threads)) << 32) | std::uint32_t(parts);
}
constexpr int threads_of(Offer offer) { return int(offer >> 32); }
constexpr int parts_of(Offer offer) { return int(offer & 0xffffffffU); }
constexpr bool is_for(Offer offer, int worker) {
  return parts_of(offer) > 0 && worker < threads_of(offer);
}

// One cache line per worker: wakers read only `asleep`.
struct alignas(64) Worker {
  std::atomic<int> asleep = 0;
};

struct PoolRegion {
  int parts = 0;
  const FunctionRef<void(int part)>* run = nullptr;  // its caller's
};

struct Pool {
  alignas(64) std::atomic<bool> busy = false;
  alignas(64) std::atomic<Offer> offer = 0;
  alignas(64) std::atomic<int> unfinished = 0;
  // The caller's view when the last region started.
  alignas(64) std::atomic<int> cpus = 1;
  std::atomic<bool> crowded = false;  // more threads than CPUs
  // Modified only while `busy` is held.
  alignas(64) PoolRegion region;
  int workers = 0;  // running threads, including the caller as the first
  Worker worker[max_threads];
};

constinit Pool pool;
thread_local bool in_region = false;

// Waits briefly, and yields the CPU if others may need it.
void relax(bool give_way) {
  if (give_way || pool.crowded.load(std::memory_order_relaxed)) {
    sched_yield();
    return;
  }
  pause_cpu();
  pause_cpu();
}

void wake(int index) {
  std::atomic<int>& asleep = pool.worker[index].asleep;
  if (asleep.load() == 1 && asleep.exchange(0) == 1) asleep.notify_one();
}

// Sleepers wake each other as a tree, so that a region of many threads starts
// after a few system calls, and the caller is hardly delayed.
void wake_children(int index, int threads) {
  if (2 * index < threads) wake(2 * index);
  if (2 * index + 1 < threads) wake(2 * index + 1);
}

bool claim(int index, Offer* offer) {
  *offer = pool.offer.load(std::memory_order_acquire);
  while (is_for(*offer, index)) {
    if (pool.offer.compare_exchange_weak(*offer, *offer - 1,
                                         std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

// Claims parts until none is left, and reports them all at once: the region
// cannot end before that, so they all belong to the same one.
void work_as(int index) {
  int done = 0;
  for (Offer offer = 0; claim(index, &offer); ++done) {
    // Only now is it certain which region this is.
    if (done == 0) wake_children(index, threads_of(offer));
    const PoolRegion& region = pool.region;
    (*region.run)(region.parts - parts_of(offer));
  }
  if (done == 0) return;
  if (pool.unfinished.fetch_sub(done) == done) pool.unfinished.notify_one();
}

bool spin_for_work(int index) {
  // Workers without a CPU would only get in the way.
  if (index >= pool.cpus.load(std::memory_order_relaxed)) return false;
  const auto until = Clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (is_for(pool.offer.load(std::memory_order_acquire), index)) {
        return true;
      }
      relax(false);
    }
  } while (Clock::now() < until);
  return false;
}

void sleep_until_woken(int index) {
  std::atomic<int>& asleep = pool.worker[index].asleep;
  asleep.store(1);
  // Sequentially consistent on both sides: either this thread sees the new
  // offer, or the thread that makes it sees the sleeper.
  if (is_for(pool.offer.load(), index)) {
    asleep.store(0);
    return;
  }
  asleep.wait(1);
}

void* worker_main(void* argument) {
  const int index = int(reinterpret_cast<std::intptr_t>(argument));
  in_region = true;
  for (;;) {
    if (!spin_for_work(index)) sleep_until_woken(index);
    work_as(index);
  }
  return nullptr;
}

// Signals are left to the program's own threads.
bool start_worker(int index) {
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  const int error =
      pthread_create(&thread, nullptr, worker_main,
                     reinterpret_cast<void*>(std::intptr_t(index)));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (error != 0) return false;
  pthread_setname_np(thread, fmt::format("fusebook-{}", index).c_str());
  pthread_detach(thread);
  return true;
}

// A forked child has no workers: it starts its own on demand.
void forget_workers() {
  pool.workers = 0;
  pool.offer.store(0);
  pool.unfinished.store(0);
  pool.busy.store(false);
  // Only reading keeps untouched pages shared with the parent.
  for (Worker& worker : pool.worker) {
    if (worker.asleep.load() != 0) worker.asleep.store(0);
  }
}

// Returns the number of threads for a region of at most `wanted`. If the system
// refuses more threads, fewer run all the parts.
int grow_pool(int wanted) {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, forget_workers);
  if (pool.workers == 0) pool.workers = 1;
  while (pool.workers < wanted && start_worker(pool.workers)) ++pool.workers;
  return pool.workers < wanted ? pool.workers : wanted;
}

void wait_for_parts() {
  const auto start = Clock::now();
  for (int turn = 0; pool.unfinished.load(std::memory_order_acquire) != 0;
       ++turn) {
    // A preempted worker gets its CPU back sooner.
    relax(turn >= 1024);
    if (turn % 64 == 63 && Clock::now() - start > wait_time) break;
  }
  for (int left = pool.unfinished.load(); left != 0;
       left = pool.unfinished.load()) {
    pool.unfinished.wait(left);
  }
}

void run_serially(int parts, FunctionRef<void(int part)> run) {
  const bool nested = in_region;
  in_region = true;
  for (int part = 0; part < parts; ++part) run(part);
  in_region = nested;
}

// Parts on OpenMP's threads may not start regions, as on those of the pool.
bool share_openmp(int threads, int parts, FunctionRef<void(int part)> run) {
  return run_on_openmp(threads, parts, [run](int part) {
    in_region = true;
    run(part);
    in_region = false;
  });
}

void run_in_pool(int threads, const PoolRegion& region) {
  in_region = true;
  pool.cpus.store(cpus(), std::memory_order_relaxed);
  pool.crowded.store(threads > cpus(), std::memory_order_relaxed);
  pool.region = region;
  pool.unfinished.store(region.parts - 1, std::memory_order_relaxed);
  pool.offer.store(make_offer(threads, region.parts - 1));
  wake(1);
  (*region.run)(0);
  work_as(0);
  wait_for_parts();
  in_region = false;
}

}  // namespace

int thread_count() {
  const int chosen = chosen_count.load(std::memory_order_relaxed);
  if (chosen != 0) return chosen;
  int count = default_count.load(std::memory_order_relaxed);
  if (count == 0) {
    count = default_thread_count(cpus());
    default_count.store(count, std::memory_order_relaxed);
  }
  return count;
}

void set_thread_count(int count) {
  if (count < 0 || count > max_threads) {
    throw UsageError(fmt::format(
        "the number of threads is {}: choose 1 to {}, or 0 for the default",
        count, max_threads));
  }
  chosen_count.store(count, std::memory_order_relaxed);
  if (count != 0) return;
  default_count.store(0, std::memory_order_relaxed);
  cpu_count.store(0, std::memory_order_relaxed);
}

void parallel_run(int parts, FunctionRef<void(int part)> run) {
  if (parts <= 0) return;
  const int threads = thread_count();
  const int useful = threads < parts ? threads : parts;
  if (useful == 1 || in_region) {
    run_serially(parts, run);
    return;
  }
  if (share_openmp(threads, parts, run)) return;
  if (pool.busy.exchange(true, std::memory_order_acquire)) {
    run_serially(parts, run);
    return;
  }
  const int available = grow_pool(useful);
  if (available == 1) {
    run_serially(parts, run);
  } else {
    run_in_pool(available, {parts, &run});
  }
  pool.busy.store(false, std::memory_order_release);
}

}  // namespace fuse
