#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse::bench {

/// A list of float32 tensors to step over.
struct Case {
  std::string name;
  std::vector<std::int64_t> sizes;
  bool with_tail = false;       ///< also with all that comes around a step
  bool with_gradients = false;  ///< also with gradients that come and go
};

/// What is measured, numbered from 1 on the command line.
const std::vector<Case>& all_cases();

}  // namespace fuse::bench
