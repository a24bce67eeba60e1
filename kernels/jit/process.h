#pragma once

#include <string>
#include <vector>

namespace fuse {

/// How a program ended and what it wrote.
struct ProcessResult {
  /// Exit status, or -1 when a signal ended the program.
  int exit_code = -1;
  /// The signal that ended the program, or 0.
  int signal = 0;
  /// False when this process discards its children's status (SIGCHLD is
  /// ignored): the other two are then unknown.
  bool status_known = true;
  /// The beginning of what it wrote to standard output and standard error.
  std::string output;
};

/// Runs the program `argv[0]` (looked up in PATH if it has no slash) with the
/// arguments `argv`, and waits for its end. No shell takes part. The program
/// reads nothing, inherits no other file, has no signal blocked, and finds the
/// variables `environment` ("NAME=value") in place of those of the same name.
/// Of its output the first `output_limit` bytes are kept.
/// Throws Error when it cannot be started.
ProcessResult run_process(const std::vector<std::string>& argv,
                          const std::vector<std::string>& environment = {},
                          std::size_t output_limit = 65536);

/// A signal in words: "signal 9 (Killed)".
std::string signal_text(int signal);

}  // namespace fuse
