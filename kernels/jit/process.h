#pragma once

#include <string>
#include <vector>

namespace fuse {

/// The outcome and output of a program.
struct ProcessResult {
  /// Exit status, or -1 if a signal ended the program.
  int exit_code = -1;
  /// The signal that ended the program, or 0.
  int signal = 0;
  /// False if this process discards its children's status (SIGCHLD is ignored):
  /// the fields above are then unknown.
  bool status_known = true;
  /// The beginning of standard output and standard error.
  std::string output;
};

/// Runs the program `argv[0]` (looked up in PATH if it has no slash) with the
/// arguments `argv`, without a shell, and waits until it ends. The program has
/// no input, inherits no other files and no blocked signals, and the variables
/// `environment` ("NAME=value") replace those of the same name. Keeps the first
/// `output_limit` bytes of its output. Throws Error if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment = {},
                          std::size_t output_limit = 65536);

/// A signal with its name: "signal 9 (Killed)".
std::string signal_text(int signal);

}  // namespace fuse
