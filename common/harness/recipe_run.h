#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fusebook/harness/recipe_logs.h"
#include "fusebook/harness/transcript.h"

namespace fuse {

/// What the recipe that is running has put out so far.
struct RecipeRun {
  Record record;
  int places = 0;
  std::vector<std::string> columns;  // of the table that is being printed
  ShownLogs logs;
  bool body_done = false;
  bool wants_record = false;
  bool is_silent = false;  // another process says the same
};

/// The recipe that is running, or null.
RecipeRun* current_run();

/// Writes to standard output at once, unless the run is silent. Throws Error when
/// that fails.
void write_out(std::string_view text);

}  // namespace fuse
