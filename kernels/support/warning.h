#pragma once

#include <string>
#include <string_view>

namespace fuse {

/// True for the first call with this `topic` in this process. Lock-free.
bool first_time(std::string_view topic);

/// Writes one line, "fusebook: warning: <message>", to standard error.
void warn(const std::string& message);

/// The same, but only once per message in this process.
void warn_once(const std::string& message);

}  // namespace fuse
