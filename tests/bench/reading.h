#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fuse::bench {

/// One figure of one process, as one line of text: what a process that
/// measures tells the one that started it.
struct Reading {
  std::string kind;     ///< "step", "tail", "gradients", "groups", "memory",
                        ///< "host" or "compile"
  std::string of_case;  ///< what was measured
  std::string variant;  ///< how it was done
  double us = 0;
  std::int64_t bytes = 0;  ///< moved, or of memory; 0 where that says nothing
  /// What the time is divided by, measured in turns with it unless the name says
  /// otherwise, and how long that took; empty and 0 where there is nothing.
  std::string divisor = {};
  double divisor_us = 0;
};

/// Writes a reading to standard output.
void tell(const Reading& reading);

/// The reading in a line, if there is one.
std::optional<Reading> parse_reading(const std::string& line);

}  // namespace fuse::bench
