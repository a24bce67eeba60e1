#include "fusebook/support/output_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"

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

/// The path with links followed if it exists, else unchanged.
std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  std::free(real);
  return result;
}

// A new name is durable once its directory is synced. Not every file system
// supports that, and the file is complete under either name.
void sync_folder(const std::string& path) {
  const UniqueFd folder(
      open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) static_cast<void>(fsync(folder.get()));
}

}  // namespace

OutputFile::OutputFile(const std::string& option, const std::string& path)
    : target_(resolved(path)) {
  struct stat found{};
  const bool exists = stat(target_.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) {
    throw UsageError(option + ": '" + path + "' is a directory; name a file");
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
  if (!direct) aside_ = fmt::format("{}.part-{}", target_, getpid());
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : target_(std::move(other.target_)),
      aside_(std::move(other.aside_)),
      pending_(std::exchange(other.pending_, false)) {}

OutputFile::~OutputFile() {
  if (pending_ && !aside_.empty()) unlink(aside_.c_str());
}

void OutputFile::write(std::string_view text) { write(std::span(&text, 1)); }

void OutputFile::write(std::span<const std::string_view> pieces) {
  const int file = begin_written();
  UniqueFd owner(file);
  for (const std::string_view piece : pieces) {
    if (!write_all(file, piece)) fail_to_write(written());
  }
  if (!aside_.empty() && fsync(file) != 0) fail_to_write(written());
  if (close(owner.release()) != 0) fail_to_write(written());
}

void OutputFile::begin() {
  if (close(begin_written()) != 0) fail_to_write(written());
}

int OutputFile::begin_written() {
  const int flags = aside_.empty() ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
  const int file = open(written().c_str(), flags | O_CLOEXEC, 0666);
  if (file < 0) fail_to_write(written());
  pending_ = true;
  return file;
}

void OutputFile::commit() {
  if (!pending_) return;
  if (!aside_.empty() && rename(aside_.c_str(), target_.c_str()) != 0) {
    fail_to_write(target_);
  }
  pending_ = false;
  if (!aside_.empty()) sync_folder(target_);
}

FilePieces::FilePieces(std::string path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_WRONLY | O_CLOEXEC)) {
  if (!file_.valid()) fail_to_write(path_);
}

void FilePieces::write(std::uint64_t begin, std::string_view bytes) {
  if (!write_all_at(file_.get(), begin, bytes)) fail_to_write(path_);
}

// What is not a file on a disk, such as /dev/null, cannot be synced.
void FilePieces::finish() {
  if (fsync(file_.get()) != 0 && errno != EINVAL) fail_to_write(path_);
  if (close(file_.release()) != 0) fail_to_write(path_);
}

}  // namespace fuse
