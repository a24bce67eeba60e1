#pragma once

#include <string>
#include <vector>

namespace fuse {

/// Directories that may contain CUDA libraries, besides those of the loader:
/// the `configured` ones (separated by semicolons), and those of the toolkits
/// in FUSEBOOK_CUDA_HOME, CUDA_HOME, CUDA_PATH and /usr/local/cuda.
std::vector<std::string> cuda_library_folders(const std::string& configured);

}  // namespace fuse
