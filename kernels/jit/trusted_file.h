#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "fusebook/support/file_io.h"

namespace fuse {

/// Why no code is loaded from a file or folder of this status: it belongs to
/// somebody else (root may own it with `of_root_too`), or others can write to
/// it, until chmod gives it that `mode`. Empty if it can be trusted.
std::string why_not_trusted(const struct stat& status, bool of_root_too,
                            const char* mode);

/// Opens a file of code for reading: a regular file, not a link, of this user
/// or root, that nobody else can write, in a folder of which the same is true.
/// On failure the result is not valid and `problem` says why.
UniqueFd open_trusted_file(const std::string& path, std::string* problem);

}  // namespace fuse
