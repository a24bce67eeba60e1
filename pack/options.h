#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fusebook/nvrtc/nvrtc_compile.h"

/// What a call of fusebook-pack asks for.
struct Options {
  std::string output;
  /// Of `fuse::cpu_levels()`.
  std::vector<std::string> levels;
  std::vector<fuse::GpuTarget> gpus;
  /// The simulated GPU, whose kernels are code for the CPU.
  bool simulator = false;
  /// Where FUSEBOOK_KEEP_SOURCE left sources; empty: `command` makes them.
  std::string sources;
  std::vector<std::string> command;
  /// A pack to describe, instead of all of this.
  std::string listed;
};

/// The options of a command line; nothing if all it wanted was printed. Throws
/// UsageError.
std::optional<Options> read_options(int argc, char** argv);
