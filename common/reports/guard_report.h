#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/ir/plan.h"
#include "fusebook/reports/log.h"
#include "fusebook/reports/recording_diff.h"
#include "fusebook/support/error.h"

namespace fuse {

/// A number that no longer is what a kernel was made for.
struct GuardFailure {
  /// `param_groups[0]["lr"]`, or "scalar at file:line" for one without a name.
  std::string path;
  double guarded = 0;   ///< the value baked into that kernel
  double now = 0;       ///< the value that was recorded
  LogPlace place = {};  ///< of a number without a name

  friend bool operator==(const GuardFailure&, const GuardFailure&) = default;
};

/// Why a function could not use the kernels it had.
struct RecompileReport {
  std::string function;  ///< its name
  LogPlace place;        ///< where it was compiled
  /// Kernel by kernel, the newest first. Empty when no kernel had been made for
  /// the operations that were recorded.
  std::vector<GuardFailure> failures;
  /// How the recording differs from the one before, where no kernel was made for
  /// its operations: "params was float32, now float64", or "the recorded
  /// operations differ: " and how.
  std::vector<std::string> changes;
  std::vector<LogPlace> change_places;  ///< that these name

  /// The paths in `failures`, each once.
  std::vector<std::string> moved() const;
  /// "step in file:line".
  std::string where() const;
  /// Every place that the text of the report names.
  std::vector<LogPlace> places() const;
};

/// Appends what keeps a kernel's plan from serving `program`, which has the
/// structure that the plan was made for. What is there already is not repeated.
void add_failures(RecompileReport& report, const Plan& plan,
                  const Program& program);

/// Fills `changes` if `program` does what `known` did, to lists of other dtypes,
/// strides or devices.
void add_changes(RecompileReport& report, const Program& known,
                 const Program& program);

/// Adds how the operations differ.
void add_difference(RecompileReport& report, const RecordingDiff& diff);

/// The report as it is logged: what is recompiled, then a line a failure.
std::string to_string(const RecompileReport& report);

/// A recompile under Policy::fail_on_recompile.
class RecompileError : public Error {
 public:
  explicit RecompileError(RecompileReport why);
  /// What was going to be compiled again, and why.
  const RecompileReport& report() const { return report_; }

 private:
  RecompileReport report_;
};

}  // namespace fuse
