#pragma once

#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

namespace fuse {

/// What the library can log, each on a separate switch.
enum class Log {
  recompiles,   ///< why something is compiled again
  output_code,  ///< the code that was generated
  graph,        ///< what was recorded, and what was planned
};

/// Switches a channel on or off. The environment variable FUSEBOOK_LOGS (a list
/// such as "recompiles,graph", or "all") sets the initial state; an unknown
/// name there is a UsageError.
void set_logs(Log channel, bool on = true);
bool log_enabled(Log channel);  ///< Whether a channel is on.

/// A place in a source file, shown as "file:line".
struct LogPlace {
  std::string file;        ///< As passed to the compiler.
  std::uint32_t line = 0;  ///< Starting from 1.

  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

/// "file:line".
std::string to_string(const LogPlace& place);
/// A place in the program, as logs name it.
LogPlace log_place(const std::source_location& place);

/// A complete message, "[recompiles] ..." up to its newline, and the places
/// that it names.
struct LogMessage {
  Log channel{};                 ///< The channel it came from.
  std::string text;              ///< The message.
  std::vector<LogPlace> places;  ///< In the order of the text.
};

/// Writes one message, if its channel is on.
void write_log(Log channel, const std::string& message,
               std::vector<LogPlace> places = {});

/// Receives messages instead of stderr; an empty function returns to stderr.
void set_log_sink(std::function<void(const LogMessage&)> sink);

}  // namespace fuse
