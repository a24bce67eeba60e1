#include "bench/promises.h"

#include <cstdio>
#include <string>

namespace fuse::bench {
namespace {

// `variant` takes at most `most` times as long as `peer`; without a peer, at
// most that many microseconds.
struct Promise {
  const char* of_case;
  const char* variant;
  const char* peer;
  double most;
};

constexpr Promise promises[] = {
    {"10 x 1024 x 1024", "compiled", "limit", 1.05},
    {"10 x 1024 x 1024", "compiled", "by hand", 1.03},
    {"10 x 1024 x 1024", "interpreted", "limit", 1.6},
    {"1000 x 64", "compiled", "bare kernel", 2},
    {"10 tensors", "first step, from disk", nullptr, 1000},
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

}  // namespace

bool check_promises(const std::vector<Row>& rows, double slack) {
  bool all = true;
  for (const Promise& promise : promises) {
    const Row* const row = find_row(rows, promise.of_case, promise.variant);
    if (row == nullptr) continue;
    if (promise.peer == nullptr) {
      all = holds(promise, row->us, slack) && all;
      continue;
    }
    const Row* const peer = find_row(rows, promise.of_case, promise.peer);
    if (peer == nullptr) continue;
    // Where there is a limit both ratios were taken in one process.
    const double ratio = row->ratio_to_limit / peer->ratio_to_limit;
    all = holds(promise, ratio, slack) && all;
  }
  // Adam in seven list passes moves 18 arrays for every 7.
  const Row* const eager = find_row(rows, "10 x 1024 x 1024", "foreach");
  if (eager == nullptr) return all;
  const bool honest = 2 <= eager->ratio_to_limit && eager->ratio_to_limit <= 4;
  std::printf("  %-4s foreach is an honest peer: %.3g x limit, from 2 to 4\n",
              honest ? "ok" : "FAIL", eager->ratio_to_limit);
  return all && honest;
}

}  // namespace fuse::bench
