#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fuse {

/// Owns a file descriptor and closes it on destruction. -1: none.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd();
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// Releases ownership: the caller closes the descriptor.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Writes all of `bytes`. False on failure, with errno set; reaching the file
/// size limit (RLIMIT_FSIZE) is a failure too and raises no signal.
bool write_all(int fd, std::string_view bytes);

/// The same at a place of the file, which grows if it ends before.
bool write_all_at(int fd, std::uint64_t begin, std::string_view bytes);

/// Reads exactly `size` bytes from the start of the file. False on failure,
/// with errno set (0 if the file is shorter).
bool read_exactly(int fd, std::size_t size, std::string* bytes);

/// Creates `path`, which must not exist, accessible only to its owner, and
/// writes `bytes`. False on failure, with errno set.
bool write_new_file(const std::string& path, std::string_view bytes);

/// The text for the current value of errno.
std::string errno_text();

}  // namespace fuse
