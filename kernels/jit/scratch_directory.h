#pragma once

#include <string>

namespace fuse {

/// A directory of its own for one compilation, private to the user; removed
/// with all it holds at the end.
class ScratchDirectory {
 public:
  /// None: `path()` is empty.
  ScratchDirectory() = default;
  /// Makes one inside `parent`. When that fails `path()` is empty and errno
  /// set. The first one inside `parent` also sweeps it.
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

/// Makes one in the user's directory for temporaries: TMPDIR, else /tmp.
/// Throws Error when neither can be written.
ScratchDirectory make_temporary_directory();

/// Removes what processes that were interrupted left in `parent`: scratch
/// directories of this user that are older than an hour, or whose process no
/// longer lives.
void sweep_scratch(const std::string& parent);

}  // namespace fuse
