#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/ir/program.h"
#include "fusebook/reports/log.h"
#include "fusebook/trace/facts.h"

namespace fuse {

/// What a function recorded, and the facts that its optimizers stated.
struct Recorded {
  const Program& program;
  const Facts& facts;
};

/// How one recording differs from another, and the places named in the text.
struct RecordingDiff {
  std::string text;
  std::vector<LogPlace> places;
};

/// For each slot of `now`, the one that was used in its place in `before`, or -1;
/// empty if the two do not do the same operations.
std::vector<std::int32_t> slots_before(const Program& before,
                                       const Program& now);

/// The first difference that changes operations, in terms of the user's code:
/// `param_groups[1]["weight_decay"] was 0 and is 0.1, which adds add_scaled`.
/// If no optimizer reports such a change, the first operation that differs,
/// with its place in both.
RecordingDiff diff_recordings(const Recorded& before, const Recorded& now);

}  // namespace fuse
