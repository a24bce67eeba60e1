#pragma once

#include <string>

#include "fusebook/programs/policy.h"

namespace fuse {

/// How a recorded program is run.
enum class Backend {
  compiled,     ///< generated code; interpreted if there is no compiler
  interpreted,  ///< prebuilt loops, tile by tile
  simulated,    ///< a GPU's code on the simulated one, in host memory
};

/// How a function is compiled, beside what it does.
struct CompileOptions {
  /// Names the function in logs and errors.
  std::string name = "step";
  /// Makes a graph break an error instead of a second launch.
  bool fullgraph = false;
  Backend backend = Backend::compiled;  ///< Who runs the kernels.
  /// What happens when a plain number has changed.
  Policy policy = Policy::promote;
};

}  // namespace fuse
