#include "bench/promises.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "bench/steps.h"
#include "fusebook/support/available_memory.h"

namespace fuse::bench {
namespace {

constexpr const char* beside_openmp = "beside OpenMP";

// `variant` takes at most `most` times as long as `peer`; without a peer, at
// most that many microseconds.
struct Promise {
  const char* kind;
  const char* of_case;
  const char* variant;
  const char* peer;
  double most;
};

constexpr const char* cold_kernel = "bare kernel, caches used by others";
constexpr const char* kept_limit = "limit, gradients kept";
constexpr const char* kernel_of_many = "bare kernel, 10000 rates, moved";
constexpr const char* bfloat16_opmath = "compiled, bfloat16, opmath";
constexpr const char* float16_opmath = "compiled, float16, opmath";

constexpr Promise promises[] = {
    {"step", "10 x 1024 x 1024", "compiled", "limit", 1.05},
    {"step", "10 x 1024 x 1024", "compiled", "by hand", 1.03},
    {"step", "10 x 1024 x 1024", "interpreted", "limit", 1.6},
    {"step", "1000 x 64", "compiled", "bare kernel", 2},
    // Half of the bytes; what else they take is roundings.
    {"step", "10 x 1024 x 1024", bfloat16_opmath, "compiled", 0.85},
    {"step", "10 x 1024 x 1024", float16_opmath, "compiled", 0.85},
    {"step", "10000 x 64", "limit", "bare kernel", 1.05},
    // Unscaling, checking, clipping, Adam and an average: 44 bytes an element, 40
    // where gradients are not written.
    {"tail", "10 x 1024 x 1024", "compiled", "limit", 1.1},
    {"tail", "10 x 1024 x 1024", "compiled, in registers", kept_limit, 1.1},
    {"tail", "GPT-2 small", "compiled", "limit", 1.1},
    {"tail", "GPT-2 small", "compiled, in registers", kept_limit, 1.1},
    {"tail", "1000 x 64", "compiled", "bare kernel", 2},
    // Everybody's loop: other gradients in each step. That they are not in the
    // caches is no cost of the step.
    {"gradients", "1000 x 64", "zero_grad, backward", cold_kernel, 2},
    {"gradients", "1000 x 64", "all new", cold_kernel, 2},
    {"gradients", "1000 x 64", "foreign, all new", cold_kernel, 2},
    {"gradients", "1000 x 64", "addresses, all new", cold_kernel, 2},
    {"gradients", "1000 x 64", "one new", "kept", 1.5},
    {"gradients", "1000 x 64", "some in turn", cold_kernel, 2},
    {"gradients", "10000 x 64", "zero_grad, backward", cold_kernel, 2},
    {"gradients", "10000 x 64", "all new", cold_kernel, 2},
    {"gradients", "10000 x 64", "foreign, all new", cold_kernel, 2},
    {"gradients", "10000 x 64", "addresses, all new", cold_kernel, 2},
    {"gradients", "10000 x 64", "one new", "kept", 1.5},
    {"gradients", "10000 x 64", "some in turn", cold_kernel, 2},
    // Rates of their own, which a schedule moves, cost what one rate costs.
    {"groups", "10000 x 64", "100 groups, floats, moved",
     "1 group, floats, moved", 1.3},
    {"groups", "10000 x 64", "100 groups, tensors, moved",
     "1 group, tensors, moved", 1.3},
    {"groups", "10000 x 64", "10000 groups, floats, moved", kernel_of_many, 3},
    {"groups", "10000 x 64", "10000 groups, tensors, moved", kernel_of_many, 3},
    // With a kernel that is there.
    {"groups", "10000 x 64", "first call, 10000 groups, floats", nullptr, 1e5},
    {"groups", "10000 x 64", "first call, 10000 groups, tensors", nullptr, 1e5},
    {"compile", "10 tensors", "first step, from disk", nullptr, 1000},
};

bool holds(const Promise& promise, double value, double slack) {
  const bool good = value <= promise.most * (1 + slack);
  const std::string whom =
      promise.peer == nullptr ? "us" : std::string("x ") + promise.peer;
  std::printf("  %-4s %s: %s %.3g %s, promised %.4g\n", good ? "ok" : "FAIL",
              promise.of_case, promise.variant, value, whom.c_str(),
              promise.most);
  return good;
}

// A large case is measured piece by piece.
bool check_memory(const std::vector<Row>& rows) {
  constexpr std::int64_t most = 4'000'000'000;
  const Row* const peak = find_row(rows, "memory", "GPT-2 small", peak_name);
  if (peak == nullptr) return true;
  const bool good = peak->bytes <= most;
  std::printf("  %-4s GPT-2 small: %s of memory, promised %s\n",
              good ? "ok" : "FAIL", format_bytes(peak->bytes).c_str(),
              format_bytes(most).c_str());
  return good;
}

// Adam in seven list passes moves 18 arrays for every 7.
bool check_eager(const std::vector<Row>& rows) {
  const Row* const eager =
      find_row(rows, "step", "10 x 1024 x 1024", "foreach");
  if (eager == nullptr) return true;
  const bool good = 2 <= eager->ratio && eager->ratio <= 4;
  std::printf("  %-4s foreach is an honest peer: %.3g x limit, from 2 to 4\n",
              good ? "ok" : "FAIL", eager->ratio);
  return good;
}

// The two kinds of threads do not get in each other's way. Caches are cold after
// the other's turn.
bool check_openmp(const std::vector<Row>& rows, double slack) {
  const Row* const alone = find_row(rows, "host", beside_openmp, "step alone");
  const Row* const after =
      find_row(rows, "host", beside_openmp, "step after OpenMP");
  if (alone == nullptr || after == nullptr) return true;
  const double ratio = after->us / alone->us;
  const bool good = ratio <= 1.1 * (1 + slack);
  std::printf("  %-4s step after OpenMP, to alone: %.3g, promised 1.1\n",
              good ? "ok" : "FAIL", ratio);
  return good;
}

// Compiling does not depend on the number of tensors.
bool check_compile_times(const std::vector<Row>& rows, double slack) {
  const Row* const few = find_row(rows, "compile", "10 tensors", "cold");
  const Row* const many = find_row(rows, "compile", "10000 tensors", "cold");
  if (few == nullptr || many == nullptr) return true;
  const double ratio = many->us / few->us;
  const bool good = ratio <= 1.1 * (1 + slack);
  std::printf("  %-4s cold compile, 10,000 tensors to 10: %.3g, promised 1.1\n",
              good ? "ok" : "FAIL", ratio);
  return good;
}

}  // namespace

bool check_promises(const std::vector<Row>& rows, double slack) {
  bool all = true;
  for (const Promise& promise : promises) {
    const Row* const row =
        find_row(rows, promise.kind, promise.of_case, promise.variant);
    if (row == nullptr) continue;
    if (promise.peer == nullptr) {
      all = holds(promise, row->us, slack) && all;
      continue;
    }
    const Row* const peer =
        find_row(rows, promise.kind, promise.of_case, promise.peer);
    if (peer == nullptr) continue;
    // Both were divided by the same, each in its own process.
    const double ratio = row->ratio / peer->ratio;
    all = holds(promise, ratio, slack) && all;
  }
  all = check_eager(rows) && all;
  all = check_memory(rows) && all;
  all = check_openmp(rows, slack) && all;
  return check_compile_times(rows, slack) && all;
}

}  // namespace fuse::bench
