#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fuse {

/// What the library can tell while it works, each on its own switch.
enum class Log { recompiles, output_code, graph };

/// Switches channels on or off. The environment variable FUSEBOOK_LOGS (a list
/// such as "recompiles,graph", or "all") sets where each one starts; an unknown
/// name there is a UsageError.
void set_logs(Log channel, bool on = true);
bool log_enabled(Log channel);

/// A place in a source file, which a text names as "file:line".
struct LogPlace {
  std::string file;
  std::uint32_t line = 0;

  friend bool operator==(const LogPlace&, const LogPlace&) = default;
};

/// "file:line".
std::string to_string(const LogPlace& place);

/// A whole message, "[recompiles] ..." up to its newline, and the places that
/// it names.
struct LogMessage {
  Log channel{};
  std::string text;
  std::vector<LogPlace> places;
};

/// Writes one message, if its channel is on.
void write_log(Log channel, const std::string& message,
               std::vector<LogPlace> places = {});

/// Receives messages instead of stderr; an empty function returns to stderr.
void set_log_sink(std::function<void(const LogMessage&)> sink);

}  // namespace fuse
