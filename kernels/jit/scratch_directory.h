#pragma once

#include <string>

namespace fuse {

/// A private directory for one compilation, removed with its contents on
/// destruction.
class ScratchDirectory {
 public:
  /// No directory: `path()` is empty.
  ScratchDirectory() = default;
  /// Makes a directory inside `parent`. On failure `path()` is empty and errno
  /// is set. The first one inside `parent` also sweeps it.
  explicit ScratchDirectory(const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(ScratchDirectory&& other) noexcept;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Makes a directory in TMPDIR, else /tmp. Throws Error if neither is writable.
ScratchDirectory make_temporary_directory();

/// Removes what interrupted processes left in `parent`: scratch directories of
/// this user that are older than an hour, or whose process no longer exists.
void sweep_scratch(const std::string& parent);

}  // namespace fuse
