#pragma once

#include <span>
#include <vector>

#include "fusebook/prelude/launch.h"

namespace fuse {

/// The rows of a table, divided among threads.
struct TableParts {
  std::vector<Part> parts;
  /// Rows shared by several parts.
  std::vector<i64> split_rows;
};

/// How many shares of work of this weight, about the number of its elements, are
/// worth making: one per thread, several if there is a lot of work, fewer if
/// there is little.
i64 count_shares(i64 weight, int threads);

/// The weight of a row, or of a chunk, with so many elements.
i64 weight_of(i64 elements);

/// Cuts rows into parts of equal weight: one per thread, several if there is a
/// lot of work, fewer if there is little.
void share_out(std::span<const Row> rows, int threads, TableParts& to);

}  // namespace fuse
