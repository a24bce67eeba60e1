#include "fusebook/nvrtc/toolkit_folders.h"

#include <cstdlib>
#include <sstream>

namespace fuse {

std::vector<std::string> cuda_library_folders(const std::string& configured) {
  std::vector<std::string> folders;
  std::istringstream list(configured);
  for (std::string folder; std::getline(list, folder, ';');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  const auto add = [&](const std::string& home) {
    for (const char* const under : {"/lib64", "/lib"}) {
      folders.push_back(home + under);
    }
  };
  for (const char* const name :
       {"FUSEBOOK_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"}) {
    const char* const home = std::getenv(name);
    if (home != nullptr && *home != '\0') add(home);
  }
  add("/usr/local/cuda");
  return folders;
}

}  // namespace fuse
