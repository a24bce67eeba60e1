#pragma once

#include <span>
#include <vector>

#include "fusebook/prelude/launch.h"

namespace fuse {

/// The rows of a table shared out among threads.
struct TableParts {
  std::vector<Part> parts;
  /// Rows that several parts share.
  std::vector<i64> split_rows;
};

/// Cuts rows into parts of equal weight: one a thread, several where there is
/// much to do, fewer where there is little.
void share_out(std::span<const Row> rows, int threads, TableParts& to);

}  // namespace fuse
