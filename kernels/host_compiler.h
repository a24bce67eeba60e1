#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "error.h"

namespace fuse {

/// There was no room for the compiler's files.
class DiskFull : public Error {
 public:
  using Error::Error;
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
/// Throws Error when the compiler fails, is killed, or writes nothing; DiskFull
/// when that was for want of space.
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
