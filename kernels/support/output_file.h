#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fuse {

/// A file that appears whole or not at all: it is written beside its final
/// place, brought to the disk, and takes its place in one step. What is left
/// uncommitted is removed.
///
/// A target that is no regular file (a terminal, a pipe, /dev/null) is
/// written to directly.
class OutputFile {
 public:
  /// Finds the place to write to. Throws UsageError, beginning with `option`,
  /// when the folder is missing or cannot be written to.
  OutputFile(const std::string& option, const std::string& path);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  /// Writes all of `text` aside. Throws Error when that fails.
  void write(std::string_view text);
  /// The same for a text in pieces, one after the other.
  void write(std::span<const std::string_view> pieces);
  /// Puts what was written into its place. Throws Error when that fails.
  void commit();

  /// Where the file will be, with links followed.
  const std::string& target() const { return target_; }
  /// The file written aside; empty for a target that is written directly.
  const std::string& aside() const { return aside_; }

 private:
  std::string target_;
  std::string aside_;
  bool pending_ = false;
};

}  // namespace fuse
