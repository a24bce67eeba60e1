#include "fusebook/jit/trusted_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

namespace fuse {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string open_fault() {
  return errno == ELOOP ? "is a symbolic link"
                        : "cannot be opened: " + errno_text();
}

std::string folder_fault(int folder) {
  struct stat status = {};
  if (fstat(folder, &status) != 0) return "cannot be read: " + errno_text();
  std::string fault = why_not_trusted(status, true, "go-w");
  return fault.empty() ? fault : "lies in a folder that " + fault;
}

std::string file_fault(int file) {
  struct stat status = {};
  if (fstat(file, &status) != 0) return "cannot be read: " + errno_text();
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  return why_not_trusted(status, true, "go-w");
}

}  // namespace

std::string why_not_trusted(const struct stat& status, bool of_root_too,
                            const char* mode) {
  const bool of_root = of_root_too && status.st_uid == 0;
  if (status.st_uid != geteuid() && !of_root) {
    return fmt::format("belongs to user {}, not to user {}", status.st_uid,
                       geteuid());
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fmt::format("is writable by others (mode {:o}; chmod {} it)",
                     status.st_mode & 07777U, mode);
}

UniqueFd open_trusted_file(const std::string& path, std::string* problem) {
  problem->clear();
  const std::string folder_path = folder_of(path);
  const UniqueFd folder(
      open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    *problem = "cannot be opened: " + errno_text();
    return UniqueFd();
  }
  *problem = folder_fault(folder.get());
  if (!problem->empty()) return UniqueFd();
  const std::string name = path.substr(path.rfind('/') + 1);
  // O_NONBLOCK: opening a named pipe must not block.
  UniqueFd file(
      openat(folder.get(), name.c_str(),
             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  *problem = file.valid() ? file_fault(file.get()) : open_fault();
  return problem->empty() ? std::move(file) : UniqueFd();
}

}  // namespace fuse
