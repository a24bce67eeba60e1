#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/reports/log.h"
#include "fusebook/support/error.h"

namespace fuse {

class Program;
struct Plan;
struct RecordingDiff;

/// A number that differs from the value a kernel was made for.
struct GuardFailure {
  /// `param_groups[0]["lr"]`, or "scalar at file:line" for an unnamed one.
  std::string path;
  double guarded = 0;   ///< the value baked into that kernel
  double now = 0;       ///< the value that was recorded
  LogPlace place = {};  ///< of an unnamed number

  friend bool operator==(const GuardFailure&, const GuardFailure&) = default;
};

/// Why none of a function's kernels could be used.
struct RecompileReport {
  std::string function;  ///< its name
  LogPlace place;        ///< where it was compiled
  /// Kernel by kernel, the latest first. Empty if no kernel had been made for
  /// the recorded operations.
  std::vector<GuardFailure> failures;
  /// How the recording differs from the previous one, if no kernel was made for
  /// its operations: "params was float32, now float64", or how the recorded
  /// operations differ.
  std::vector<std::string> changes;
  std::vector<LogPlace> change_places;  ///< the places named there

  /// The paths in `failures`, without repeats.
  std::vector<std::string> moved() const;
  /// "step in file:line".
  std::string where() const;
  /// All places that the text of the report names.
  std::vector<LogPlace> places() const;
};

/// Appends the reasons why a kernel's plan cannot serve `program`, which has
/// the structure that the plan was made for. Skips those already present.
void add_failures(RecompileReport& report, const Plan& plan,
                  const Program& program);

/// Fills `changes` if `program` does the same as `known`, but to lists of other
/// dtypes, strides or devices.
void add_changes(RecompileReport& report, const Program& known,
                 const Program& program);

/// Adds how the operations differ.
void add_difference(RecompileReport& report, const RecordingDiff& diff);

/// The report as it is logged: what is recompiled, then one line per failure.
std::string to_string(const RecompileReport& report);

/// A recompile under Policy::fail_on_recompile.
class RecompileError : public Error {
 public:
  explicit RecompileError(RecompileReport why);
  /// What would have been recompiled, and why.
  const RecompileReport& report() const { return report_; }

 private:
  RecompileReport report_;
};

}  // namespace fuse
