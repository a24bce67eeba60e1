#include "bench_ranks/link_model.h"

#include <bit>

#include "fusebook/support/error.h"

namespace fuse::bench {

int messages_in_a_call(int ranks) {
  return int(std::bit_width(unsigned(ranks) - 1));
}

int messages_in_an_exchange(int ranks) { return ranks - 1; }

Line fit_line(const std::vector<ExchangeTime>& times) {
  // Of x * first + y * each = 1, where x and y are 1 and the bytes, both divided
  // by the time.
  double xx = 0;
  double xy = 0;
  double yy = 0;
  double x_sum = 0;
  double y_sum = 0;
  for (const ExchangeTime& time : times) {
    const double x = 1 / time.us;
    const double y = double(time.bytes) / time.us;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x_sum += x;
    y_sum += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (times.size() < 2 || determinant <= 1e-12 * xx * yy) {
    throw Error("a line needs times of at least two sizes");
  }
  const double first = (x_sum * yy - y_sum * xy) / determinant;
  const double each = (y_sum * xx - x_sum * xy) / determinant;
  if (first < 0) return {0, y_sum / yy};
  if (each < 0) return {x_sum / xx, 0};
  return {first, each};
}

double LinkModel::us(const RankTraffic& sent, int ranks) const {
  const std::int64_t bytes =
      sent.gradients + sent.parameters + sent.sums + sent.agreement;
  return double(sent.calls) * messages_in_a_call(ranks) * call_us +
         double(sent.exchanges) * messages_in_an_exchange(ranks) * exchange_us +
         double(bytes) * us_per_byte;
}

double LinkModel::exchange(std::int64_t bytes, int ranks) const {
  return us({.gradients = bytes, .exchanges = 1}, ranks);
}

LinkModel fit_links(const LinkTimes& times) {
  const Line line = fit_line(times.exchanges);
  return {times.call_us / messages_in_a_call(times.ranks),
          line.first / messages_in_an_exchange(times.ranks), line.each};
}

}  // namespace fuse::bench
