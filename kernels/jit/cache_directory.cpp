#include "fusebook/jit/cache_directory.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "fusebook/jit/trusted_file.h"

namespace fuse {
namespace {

std::string home_of_user() {
  std::vector<char> buffer(16384);
  passwd entry = {};
  passwd* found = nullptr;
  const int error =
      getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0 || found == nullptr || found->pw_dir == nullptr) return {};
  return found->pw_dir;
}

std::string absolute_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value == '/' ? value : std::string();
}

// With a trailing slash, lstat and open would follow a symbolic link.
std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string chosen_path(std::string_view value) {
  if (value.empty() || value == "off") return {};
  std::error_code error;
  const auto path = std::filesystem::absolute(std::string(value), error);
  return without_trailing_slashes(error ? std::string(value) : path.string());
}

// Returns an errno, or 0 on success.
int make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      // mkdir may fail on an existing parent for another reason (a read-only
      // file system): what matters is whether it exists.
      const int error = errno;
      struct stat status = {};
      if (stat(part.c_str(), &status) != 0) return error;
    }
    if (slash == std::string::npos) return 0;
    ++slash;
  }
}

std::string why_not_opened(const std::string& path, int error) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) == 0) {
    if (S_ISLNK(status.st_mode)) return "is a symbolic link";
    if (!S_ISDIR(status.st_mode)) return "is not a directory";
  }
  return "cannot be opened: " + std::generic_category().message(error);
}

}  // namespace

std::string cache_path() {
  const char* const chosen = std::getenv("FUSEBOOK_CACHE_DIR");
  if (chosen != nullptr) return chosen_path(chosen);
  if (const auto cache = absolute_variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/fusebook";
  }
  std::string home = absolute_variable("HOME");
  if (home.empty()) home = home_of_user();
  if (home.empty() || home[0] != '/') return {};
  return home + "/.cache/fusebook";
}

UniqueFd open_cache_directory(const std::string& path, bool create,
                              std::string* problem) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  problem->clear();
  UniqueFd directory(open(path.c_str(), flags));
  if (!directory.valid() && errno == ENOENT && !create) return UniqueFd();
  if (!directory.valid() && errno == ENOENT) {
    const int error = make_directories(path);
    if (error != 0) {
      *problem = "cannot be created: " + std::generic_category().message(error);
      return UniqueFd();
    }
    directory = UniqueFd(open(path.c_str(), flags));
  }
  if (!directory.valid()) {
    *problem = why_not_opened(path, errno);
    return UniqueFd();
  }
  struct stat status = {};
  fstat(directory.get(), &status);
  *problem = why_not_trusted(status, false, "700");
  return problem->empty() ? std::move(directory) : UniqueFd();
}

}  // namespace fuse
