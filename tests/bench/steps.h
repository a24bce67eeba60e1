#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse::bench {

/// A list of float32 tensors to step over.
struct Case {
  std::string name;
  std::vector<std::int64_t> sizes;
};
std::vector<Case> all_cases();

/// Median time of one step of Adam, made in one way.
struct Row {
  std::string of_case;
  std::string variant;
  double us = 0;
  double ratio_to_limit = 0;
  double gb_per_s = 0;
};

/// Measures all variants of a case in one process, in random order.
std::vector<Row> measure_steps(const Case& wanted);

}  // namespace fuse::bench
