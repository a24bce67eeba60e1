#pragma once

#include <string>

namespace fuse {

/// The model name of the CPU, for example "AMD EPYC 7763 64-Core Processor".
std::string cpu_name();

/// The operating system and its version, for example "Debian GNU/Linux 12".
std::string system_name();

}  // namespace fuse
