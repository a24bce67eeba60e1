#pragma once

#include <string>

namespace fuse {

/// Loads a shared object from its bytes and returns the result of dlopen. Uses
/// a file that no one else can reach or change. Throws Error if the bytes are
/// not a shared object for this machine, or refer to symbols that this process
/// does not have.
void* load_shared_object(const std::string& bytes);

}  // namespace fuse
