#pragma once

#include <string>
#include <vector>

/// Complete sources of kernels, each once.
struct Sources {
  std::vector<std::string> cpu;
  std::vector<std::string> gpu;
};

/// Runs a program, and returns the sources of what it compiled. Throws Error if
/// it cannot be started or does not succeed.
Sources sources_of_program(const std::vector<std::string>& command);

/// What FUSEBOOK_KEEP_SOURCE left in a folder. Throws Error if it cannot be
/// read.
Sources sources_in(const std::string& folder);
