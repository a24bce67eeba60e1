#pragma once

#include <string>

#include "fusebook/support/file_io.h"

namespace fuse {

/// The directory for compiled kernels between runs: FUSEBOOK_CACHE_DIR
/// if set ("off" or empty: none), else $XDG_CACHE_HOME/fusebook, else
/// $HOME/.cache/fusebook, else the same in the home that the user database
/// names. Empty: none.
std::string cache_path();

/// Opens the cache directory `path`, which must be a real directory owned by
/// this user and not writable by anyone else; if `create`, makes it and its
/// parents if missing. On failure the result is not valid and `problem` says
/// why (empty: it does not exist).
UniqueFd open_cache_directory(const std::string& path, bool create,
                              std::string* problem);

}  // namespace fuse
