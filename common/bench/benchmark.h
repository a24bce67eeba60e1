#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

#include "fusebook/support/undefined.h"

namespace fuse {

/// Timings of one function, in seconds a call. One that was moved from throws
/// Error, which names what was called.
class Measurement {
 public:
  /// `block_times` are seconds a block of `number_per_run` calls. Throws Error
  /// when there are none.
  Measurement(std::int64_t number_per_run, std::vector<double> block_times);

  double mean() const;                                     ///< Over all blocks.
  double median() const { return taken().quantile(0.5); }  ///< Of the blocks.
  /// Distance between the first and the third quartile: the spread that a few
  /// disturbed blocks do not change.
  double iqr() const { return taken().quantile(0.75) - quantile(0.25); }
  /// Linear between neighbours, as torch computes it; `fraction` in [0, 1].
  double quantile(double fraction) const;

  /// The mean in microseconds.
  double mean_us() const { return taken().mean() * 1e6; }
  /// The median in microseconds.
  double median_us() const { return taken().median() * 1e6; }
  /// `iqr` in microseconds.
  double iqr_us() const { return taken().iqr() * 1e6; }

  /// Calls in a block.
  std::int64_t number_per_run() const { return taken().number_per_run_; }
  /// Seconds a call, one number a block, in the order they were taken.
  const std::vector<double>& times() const { return taken().times_; }

 private:
  const Measurement& taken(
      std::source_location call = std::source_location::current()) const {
    if (times_.empty()) refuse_moved_from(call, "the measurement");
    return *this;
  }

  std::int64_t number_per_run_;
  std::vector<double> times_;
  std::vector<double> sorted_;
};

/// Seconds since some fixed point; tests put in one of their own.
using Clock = std::function<double()>;
/// The monotonic clock of the system.
double steady_seconds();
/// The same, read when the default device has done what it was asked to.
double device_seconds();

/// Times a function like `torch.utils.benchmark.Timer.blocked_autorange`.
///
/// First the number of calls in a block is raised tenfold until reading the
/// clock costs at most a ten-thousandth of a block and a block takes at least
/// a thousandth of `min_run_time_s`; this warms up, too. Then blocks are timed
/// until `min_run_time_s` is filled. Throws Error unless that is positive and
/// finite.
Measurement blocked_autorange(const std::function<void()>& fn,
                              double min_run_time_s = 0.2,
                              const Clock& clock = device_seconds);

/// How `interleaved` measures.
struct InterleavedOptions {
  /// Seconds spent on each function, all rounds together.
  double min_run_time_s = 0.2;
  /// Rounds made even if the time was filled before.
  int min_rounds = 9;
  /// For the order within the rounds.
  std::uint64_t seed = 0;
};

/// Measures several functions fairly in one process, for ratios: in every
/// round each function runs one block, in a new random order, so that a drift
/// of the machine meets all of them. Results are in the order of `fns`, and
/// `times()[r]` of all of them come from the same round.
std::vector<Measurement> interleaved(
    const std::vector<std::function<void()>>& fns,
    const InterleavedOptions& options = {},
    const Clock& clock = device_seconds);

}  // namespace fuse
