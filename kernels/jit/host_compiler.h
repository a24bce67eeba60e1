#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fusebook/support/error.h"

namespace fuse {

/// The directory given to a compilation cannot hold the compiler's files: it is
/// full, it fails, or its path is too long.
class UnusableDirectory : public Error {
 public:
  UnusableDirectory(const std::string& message, std::string problem)
      : Error(message), problem_(std::move(problem)) {}
  /// What is wrong with the directory: "cannot hold the compiler's files: ...".
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

/// The compiler that turns generated source into code for this machine.
struct HostCompiler {
  /// What to run: the program, found, and the words that follow it.
  std::vector<std::string> words;
  /// Text that changes when a program among the words is another one: path,
  /// size, time of change and inode of each.
  std::string identity;
};

/// FUSEBOOK_CXX, else CXX, else the first of c++, g++ and clang++ in PATH. A
/// value that names an executable file as a whole is that file; any other is
/// split into words by `split_words`. Throws NoCompiler when there is none,
/// UsageError for a value that cannot be split.
HostCompiler find_host_compiler();

/// The flags every kernel is compiled with, after the compiler's own words.
const std::vector<std::string>& compile_flags();

/// Compiles `source` and returns the bytes of the shared object. Its files, and
/// those of the compiler, lie in the private directory `directory`.
/// Throws Error when the compiler fails, is killed, or writes nothing, and
/// UnusableDirectory when that is the directory's fault.
std::string compile_object(const HostCompiler& compiler,
                           const std::string& source,
                           const std::string& directory);

/// Splits at blanks. '...', "..." and a backslash keep blanks and quotes in a
/// word; nothing else means anything ($, ` and * stand for themselves). Throws
/// UsageError, naming `variable`, for a quote without its partner.
std::vector<std::string> split_words(std::string_view text,
                                     const std::string& variable);

/// The path of an executable file: `name` itself if it has a slash, else the
/// first in PATH. Empty when there is none.
std::string find_program(const std::string& name);

}  // namespace fuse
