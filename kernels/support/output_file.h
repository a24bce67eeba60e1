#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fuse {

/// A file that appears complete or not at all: it is written next to its final
/// path, synced to disk, and renamed in one step. Uncommitted data is removed.
///
/// A target that is not a regular file (a terminal, a pipe, /dev/null) is
/// written directly.
class OutputFile {
 public:
  /// Determines where to write. Throws UsageError, with a message starting with
  /// `option`, if the directory is missing or not writable.
  OutputFile(const std::string& option, const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  /// Writes all of `text` to the temporary file. Throws Error on failure.
  void write(std::string_view text);
  /// The same for a text in several pieces.
  void write(std::span<const std::string_view> pieces);
  /// Moves the file to its final path. Throws Error on failure.
  void commit();

  /// The final path, with links followed.
  const std::string& target() const { return target_; }
  /// The temporary file; empty for a target that is written directly.
  const std::string& aside() const { return aside_; }

 private:
  std::string target_;
  std::string aside_;
  bool pending_ = false;
};

}  // namespace fuse
