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
  /// The problem with the directory: "cannot hold the compiler's files: ...".
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

/// The compiler that compiles generated source for this machine.
struct HostCompiler {
  /// The command: the program's path, and the words that follow it.
  std::vector<std::string> words;
  /// Text that changes when a program among the words changes: path, size,
  /// modification time and inode of each.
  std::string identity;
};

/// FUSEBOOK_CXX, else CXX, else the first of c++, g++ and clang++ in PATH. A
/// value that is the path of an executable file is used as it is; any other is
/// split into words by `split_words`. Throws NoCompiler if there is none,
/// UsageError for a value that cannot be split.
HostCompiler find_host_compiler();

/// The level of the instruction set that this machine has.
inline constexpr const char* native_level = "native";

/// The flags for compiling every kernel for this machine, after the compiler's
/// own words; and those for a level, one of `cpu_levels()`.
const std::vector<std::string>& compile_flags();
std::vector<std::string> compile_flags_for(const std::string& level);

/// Compiles `source` and returns the bytes of the shared object. Its files, and
/// the compiler's, are in the private directory `directory`. Throws Error if
/// the compiler fails, is killed, or writes nothing, and UnusableDirectory if
/// the directory is to blame.
std::string compile_object(
    const HostCompiler& compiler, const std::string& source,
    const std::string& directory,
    const std::vector<std::string>& flags = compile_flags());

/// Splits at blanks. '...', "..." and a backslash protect blanks and quotes in
/// a word; nothing else is special ($, ` and * are literal). Throws UsageError
/// naming `variable` for an unmatched quote.
std::vector<std::string> split_words(std::string_view text,
                                     const std::string& variable);

/// The path of an executable file: `name` itself if it contains a slash, else
/// the first match in PATH. Empty if there is none.
std::string find_program(const std::string& name);

}  // namespace fuse
