#pragma once

#include <string>
#include <string_view>

namespace fuse {

/// True for the first call with this `topic` in this process. Takes no lock.
bool first_time(std::string_view topic);

/// Writes one line, "fusebook: warning: <message>", to standard error.
void warn(const std::string& message);

/// The same, but each message once in the life of the process.
void warn_once(const std::string& message);

}  // namespace fuse
