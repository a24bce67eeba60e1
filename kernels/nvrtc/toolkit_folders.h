#pragma once

#include <string>
#include <vector>

namespace fuse {

/// Folders that may hold libraries of CUDA, besides those of the loader: the
/// `configured` ones (separated by semicolons), and those of the toolkits that
/// FUSEBOOK_CUDA_HOME, CUDA_HOME and CUDA_PATH name, and of /usr/local/cuda.
std::vector<std::string> cuda_library_folders(const std::string& configured);

}  // namespace fuse
