#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

#include "fusebook/support/undefined.h"

namespace fuse {

/// Timings of one function, in seconds per call. A moved-from measurement
/// throws Error naming what was called.
class Measurement {
 public:
  /// `block_times` are in seconds per block of `number_per_run` calls. Throws
  /// Error if there are none.
  Measurement(std::int64_t number_per_run, std::vector<double> block_times);

  double mean() const;                                     ///< Over all blocks.
  double median() const { return taken().quantile(0.5); }  ///< Over all blocks.
  /// Distance between the first and third quartiles: a spread that is robust
  /// against a few disturbed blocks.
  double iqr() const { return taken().quantile(0.75) - quantile(0.25); }
  /// Linear between neighbours, like torch; `fraction` in [0, 1].
  double quantile(double fraction) const;

  /// The mean in microseconds.
  double mean_us() const { return taken().mean() * 1e6; }
  /// The median in microseconds.
  double median_us() const { return taken().median() * 1e6; }
  /// `iqr` in microseconds.
  double iqr_us() const { return taken().iqr() * 1e6; }

  /// Calls per block.
  std::int64_t number_per_run() const { return taken().number_per_run_; }
  /// Seconds per call, one number per block, in the order they were taken.
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

/// Seconds since some fixed point; tests substitute their own.
using Clock = std::function<double()>;
/// The monotonic clock of the system.
double steady_seconds();
/// The same, read after the default device has finished its work.
double device_seconds();

/// Times a function like `torch.utils.benchmark.Timer.blocked_autorange`.
///
/// First the number of calls per block is raised tenfold until reading the
/// clock costs at most a ten-thousandth of a block and a block takes at least a
/// thousandth of `min_run_time_s`: the faster of two, as the first finds cold
/// caches. Then blocks are timed until `min_run_time_s` is filled. Throws Error
/// unless that is positive and finite. Where FUSEBOOK_QUICK is 1, one call is timed.
Measurement blocked_autorange(const std::function<void()>& fn,
                              double min_run_time_s = 0.2,
                              const Clock& clock = device_seconds);

/// Settings of `interleaved`.
struct InterleavedOptions {
  /// Seconds spent on each function, over all rounds.
  double min_run_time_s = 0.2;
  /// Minimum number of rounds, even if the time is up earlier.
  int min_rounds = 9;
  /// Seed for the order within the rounds.
  std::uint64_t seed = 0;
};

/// Measures several functions fairly in one process, for ratios: in every round
/// each function runs one block, in a new random order, so that drift of the
/// machine affects all of them. Results are in the order of `fns`, and
/// `times()[r]` of all of them are from the same round. Where FUSEBOOK_QUICK is 1, it
/// is one round of one call each.
std::vector<Measurement> interleaved(
    const std::vector<std::function<void()>>& fns,
    const InterleavedOptions& options = {},
    const Clock& clock = device_seconds);

}  // namespace fuse
