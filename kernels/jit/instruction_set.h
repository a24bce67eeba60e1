#pragma once

#include <string>

namespace fuse {

/// Text that differs between two machines whose native code may differ: the
/// vendor, the model and the feature words of this CPU.
const std::string& instruction_set();

}  // namespace fuse
