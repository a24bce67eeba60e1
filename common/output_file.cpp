#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "error.h"

namespace fuse {
namespace {

std::string reason() { return std::strerror(errno); }

[[noreturn]] void fail_to_write(const std::string& path) {
  throw Error("cannot write '" + path + "': " + reason());
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The path with links followed where it exists, else as it is.
std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  std::free(real);
  return result;
}

void write_all(int file, const std::string& text, const std::string& path) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(file, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += std::size_t(count);
    } else if (errno != EINTR) {
      fail_to_write(path);
    }
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& option, const std::string& path)
    : target_(resolved(path)) {
  struct stat found{};
  const bool exists = stat(target_.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) {
    throw UsageError(option + ": '" + path + "' is a folder; name a file");
  }
  const bool direct = exists && !S_ISREG(found.st_mode);
  const std::string needed = direct ? target_ : folder_of(target_);
  if (access(needed.c_str(), W_OK) != 0) {
    throw UsageError(option + ": cannot write to '" + needed +
                     "': " + reason());
  }
  if (target_.back() == '/') {
    throw UsageError(option + ": '" + path + "' ends in '/'; name a file");
  }
  if (!direct) aside_ = target_ + ".part-" + std::to_string(getpid());
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      aside_(std::move(other.aside_)),
      pending_(std::exchange(other.pending_, false)) {}

OutputFile::~OutputFile() {
  if (pending_ && !aside_.empty()) unlink(aside_.c_str());
}

void OutputFile::write(const std::string& text) {
  const bool direct = aside_.empty();
  const std::string& path = direct ? target_ : aside_;
  const int flags = direct ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (file < 0) fail_to_write(path);
  pending_ = true;
  try {
    write_all(file, text, path);
  } catch (...) {
    close(file);
    throw;
  }
  if (close(file) != 0) fail_to_write(path);
}

void OutputFile::commit() {
  if (!pending_) return;
  if (!aside_.empty() && rename(aside_.c_str(), target_.c_str()) != 0) {
    fail_to_write(target_);
  }
  pending_ = false;
}

}  // namespace fuse
