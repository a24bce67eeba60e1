#pragma once

#include <functional>
#include <string>

namespace fuse {

/// What the library can tell while it works, each on its own switch.
enum class Log { recompiles, output_code, graph };

/// Switches channels on or off. The environment variable FUSEBOOK_LOGS (a list
/// such as "recompiles,graph", or "all") sets where each one starts; an unknown
/// name there is a UsageError.
void set_logs(Log channel, bool on = true);
bool log_enabled(Log channel);

/// Writes one message, if its channel is on: "[recompiles] ...".
void write_log(Log channel, const std::string& message);

/// Receives whole messages, newline included, instead of stderr; an empty
/// function returns to stderr.
void set_log_sink(std::function<void(const std::string&)> sink);

}  // namespace fuse
