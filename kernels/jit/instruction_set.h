#pragma once

#include <string>

namespace fuse {

/// Text that differs between machines whose native code may differ: the vendor,
/// model and feature words of this CPU.
const std::string& instruction_set();

}  // namespace fuse
