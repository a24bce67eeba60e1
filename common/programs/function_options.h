#pragma once

#include <source_location>
#include <string>

#include "fusebook/programs/policy.h"

namespace fuse {

/// How a recorded program is run.
enum class Backend {
  compiled,     ///< generated code; interpreted where there is no compiler
  interpreted,  ///< prebuilt loops, tile by tile
  simulated,    ///< a GPU's code on the simulated one, over host memory
};

/// What identifies a function in messages, and how it runs.
struct FunctionOptions {
  std::string name = "function";
  bool fullgraph = false;
  Backend backend = Backend::compiled;
  Policy policy = Policy::promote;
  std::source_location place = {};
};

}  // namespace fuse
