#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fusebook/support/file_io.h"

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
  /// Begins an empty temporary file, for pieces that others write too.
  void begin();
  /// Moves the file to its final path. Throws Error on failure.
  void commit();

  /// The final path, with links followed.
  const std::string& target() const { return target_; }
  /// The temporary file; empty for a target that is written directly.
  const std::string& aside() const { return aside_; }
  /// The file that is written until `commit`.
  const std::string& written() const {
    return aside_.empty() ? target_ : aside_;
  }

 private:
  int begin_written();

  std::string target_;
  std::string aside_;
  bool pending_ = false;
};

/// Pieces of a file that exists, each written at its place. Several processes may
/// write theirs to one file at the same time.
class FilePieces {
 public:
  /// Opens the file. Throws Error on failure, as all members do.
  explicit FilePieces(std::string path);

  void write(std::uint64_t begin, std::string_view bytes);
  /// Syncs the file to disk and closes it.
  void finish();

 private:
  std::string path_;
  UniqueFd file_;
};

}  // namespace fuse
