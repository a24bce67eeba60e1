#pragma once

#include <string>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/reports/log.h"
#include "fusebook/trace/facts.h"

namespace fuse {

/// What a function recorded, and what its optimizers said of themselves.
struct Recorded {
  const Program& program;
  const Facts& facts;
};

/// How one recording differs from another, and the places that the text names.
struct RecordingDiff {
  std::string text;
  std::vector<LogPlace> places;
};

/// The first difference that changes operations, in the words of who wrote the
/// function: `param_groups[1]["weight_decay"] was 0 and is 0.1, which adds
/// add_scaled`. Where no optimizer says anything of the kind, the first operation
/// that differs, with its place in both.
RecordingDiff diff_recordings(const Recorded& before, const Recorded& now);

}  // namespace fuse
