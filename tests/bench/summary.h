#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/reading.h"

namespace fuse::bench {

/// What several processes said about one figure. The ratio is taken within
/// each process, where both sides met the same machine; everything is a median
/// over the processes.
struct Row {
  std::string kind;
  std::string of_case;
  std::string variant;
  double us = 0;
  double ratio = 0;          ///< to the divisor; 0 where there is none
  double gb_per_s = 0;       ///< 0 where no bytes were counted
  std::string divisor = {};  ///< see Reading
  std::int64_t bytes = 0;    ///< of memory, the most of all processes
};

/// Summarises the readings of the processes, one list for each.
std::vector<Row> summarise(const std::vector<std::vector<Reading>>& processes);

/// The row, or nullptr.
const Row* find_row(const std::vector<Row>& rows, const std::string& kind,
                    const std::string& of_case, const std::string& variant);

/// Prints tables of all rows.
void print_rows(const std::vector<Row>& rows);

/// The file the site plots: the machine and the rows.
std::string json_of(const std::vector<Row>& rows, std::size_t processes);

}  // namespace fuse::bench
