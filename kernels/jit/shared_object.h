#pragma once

#include <string>

namespace fuse {

/// Loads a shared object from its bytes and returns what dlopen returns. It is
/// loaded from a file that nobody else can reach or change. Throws Error when
/// the bytes are no shared object for this machine, or refer to symbols that
/// this process does not have.
void* load_shared_object(const std::string& bytes);

}  // namespace fuse
