#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/distributed/step_traffic.h"

namespace fuse::bench {

/// The median time of an exchange in which each rank sends `bytes` to the others.
struct ExchangeTime {
  std::string pattern;  ///< "gradients" or "parameters"
  std::int64_t bytes = 0;
  double us = 0;
};

/// What was measured on some number of ranks, two or more.
struct LinkTimes {
  int ranks = 2;
  double call_us = 0;  ///< of a call that sends a few bytes to everybody
  std::vector<ExchangeTime> exchanges;
};

/// Messages that wait for each other in a call that sends a few bytes to
/// everybody: in each, what is known doubles.
int messages_in_a_call(int ranks);
/// The same in an exchange: one after the other to every other rank.
int messages_in_an_exchange(int ranks);

/// A line through points: `us = first + each * bytes`.
struct Line {
  double first = 0;
  double each = 0;
};
/// The line whose squared errors, as parts of the times, have the least sum. Its
/// numbers are not negative. Throws Error for fewer than two sizes.
Line fit_line(const std::vector<ExchangeTime>& times);

/// The alpha-beta model: messages that wait for each other, and bytes.
struct LinkModel {
  double call_us = 0;      ///< alpha of a message in a call
  double exchange_us = 0;  ///< alpha of a message in an exchange
  double us_per_byte = 0;  ///< beta, of what a rank sends

  /// How long a rank is busy with what it sends in a step.
  double us(const RankTraffic& sent, int ranks) const;
  /// The same of one exchange, with the call before it.
  double exchange(std::int64_t bytes, int ranks) const;
};

/// The model's numbers on the machine that was measured.
LinkModel fit_links(const LinkTimes& times);

}  // namespace fuse::bench
