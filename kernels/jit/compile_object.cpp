// Runs the host compiler, and explains failures.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "fusebook/jit/host_compiler.h"
#include "fusebook/jit/process.h"
#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"
#include "fusebook/support/join.h"

namespace fuse {
namespace {

constexpr std::size_t message_lines = 12;
constexpr std::uint64_t object_limit = std::uint64_t(1) << 25;

// As a shell would take it.
std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" \t\n'\"\\") == word.npos;
  return plain && !word.empty() ? word : "'" + word + "'";
}

std::string text_of(const std::vector<std::string>& command) {
  return join(command, " ", quoted);
}

void remove_all(std::string* text, const std::string& part) {
  for (std::size_t at = text->find(part); at != text->npos;
       at = text->find(part, at)) {
    text->erase(at, part.size());
  }
}

// The first lines of the compiler's output, indented.
std::string first_lines(const std::string& output) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t n = 0; n < message_lines && begin < output.size(); ++n) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    text += "    " + output.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  if (begin < output.size()) text += "    ...\n";
  return text.empty() ? "    (no message)\n" : text;
}

// The line of kernel.cpp reported by the first error; 0 if none.
std::size_t reported_line(const std::string& output) {
  constexpr std::string_view file = "kernel.cpp:";
  for (std::size_t at = output.find(file); at != output.npos;
       at = output.find(file, at + 1)) {
    const char* const number = output.data() + at + file.size();
    const char* const end = output.data() + output.size();
    std::size_t line = 0;
    const auto [rest, error] = std::from_chars(number, end, line);
    const std::string_view after(rest, std::size_t(end - rest));
    const std::string_view same_line = after.substr(0, after.find('\n'));
    if (error == std::errc() && same_line.find("error") != after.npos) {
      return line;
    }
  }
  return 0;
}

// The source around `line` (starting from 1), with line numbers.
std::string numbered_lines(const std::string& source, std::size_t line) {
  std::string text;
  std::size_t begin = 0;
  for (std::size_t number = 1; begin < source.size(); ++number) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    if (number + 2 >= line && number <= line + 2) {
      text += fmt::format("{}{} | {}\n", number == line ? "  > " : "    ",
                          number, source.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return text;
}

std::string how_it_ended(const ProcessResult& result) {
  if (result.signal != 0) {
    return "was killed by " + signal_text(result.signal);
  }
  return fmt::format("failed with exit code {}", result.exit_code);
}

// The problem with the directory according to the compiler's output; empty if
// there is none. LC_ALL=C makes the output English.
std::string directory_problem(std::string_view words) {
  for (const int error : {ENOSPC, EDQUOT, EIO, EROFS, ENAMETOOLONG}) {
    const std::string text = std::generic_category().message(error);
    if (words.find(text) != words.npos) {
      return "cannot hold the compiler's files: " + text;
    }
  }
  return {};
}

void write_source(const std::string& path, const std::string& source) {
  if (write_new_file(path, source)) return;
  const std::string why = errno_text();
  throw UnusableDirectory(
      "cannot write the kernel's source to '" + path + "': " + why,
      "cannot hold the compiler's files: " + why);
}

[[noreturn]] void throw_failed(const std::vector<std::string>& command,
                               const std::string& source,
                               const std::string& directory,
                               ProcessResult result) {
  remove_all(&result.output, directory + "/");
  std::string shown = text_of(command);
  remove_all(&shown, directory + "/");
  std::string message = "the host compiler " + how_it_ended(result) +
                        "\n  command: " + shown + "\n  its output:\n" +
                        first_lines(result.output);
  const std::size_t line = reported_line(result.output);
  if (line != 0) {
    message += "  the source around it:\n" + numbered_lines(source, line);
  }
  message +=
      "  FUSEBOOK_CXX chooses another compiler (g++ 12 and clang++ 14 "
      "are known to work)";
  std::string problem = directory_problem(result.output);
  if (!problem.empty()) throw UnusableDirectory(message, std::move(problem));
  throw Error(message);
}

// Reads the shared object, if this user's compiler can have written it.
bool read_object(const std::string& path, std::string* bytes) {
  const UniqueFd file(
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
  if (std::uint64_t(status.st_size) >= object_limit) return false;
  return read_exactly(file.get(), std::size_t(status.st_size), bytes) &&
         !bytes->empty();
}

}  // namespace

// First the flags that undo a compiler's own words (CXX="g++ -Ofast") where
// those would change results; then those that vectorise exact arithmetic, and
// keep g++ 12 from moving comparisons out of a loop: it takes !(a > b) for proof
// that a is no NaN, and leaves out the loop where it is one; then those for a
// shared object that contains only the kernel.
std::vector<std::string> compile_flags_for(const std::string& level) {
  return {"-x",
          "c++",
          "-std=c++20",
          "-O3",
          "-fno-fast-math",
          "-fno-unsafe-math-optimizations",
          "-fno-finite-math-only",
          "-ffp-contract=off",
          "-fno-math-errno",
          "-fno-trapping-math",
          "-fno-unswitch-loops",
#if defined(__x86_64__) || defined(__i386__)
          "-march=" + level,
          "-mprefer-vector-width=256",
#elif defined(__aarch64__)
          (level == native_level ? "-mcpu=" : "-march=") + level,
#endif
          "-fPIC",
          "-shared",
          "-nostdlib",
          "-nostartfiles",
          "-fno-exceptions",
          "-fno-rtti",
          "-fno-asynchronous-unwind-tables",
          "-fno-stack-protector",
          "-fno-lto",
          "-fvisibility=hidden",
          "-w"};
}

const std::vector<std::string>& compile_flags() {
  static const auto* const flags =
      new std::vector<std::string>(compile_flags_for(native_level));
  return *flags;
}

std::string compile_object(const HostCompiler& compiler,
                           const std::string& source,
                           const std::string& directory,
                           const std::vector<std::string>& flags) {
  const std::string input = directory + "/kernel.cpp";
  const std::string output = directory + "/kernel.so";
  write_source(input, source);
  std::vector<std::string> command = compiler.words;
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", output, input});
  // The compiler's temporaries go where they are cleaned up with ours.
  const ProcessResult result =
      run_process(command, {"TMPDIR=" + directory, "LC_ALL=C"});
  const bool ended_well = result.signal == 0 && result.exit_code == 0;
  if (result.status_known && !ended_well) {
    throw_failed(command, source, directory, result);
  }
  std::string object;
  if (read_object(output, &object)) return object;
  throw Error(
      "the host compiler reported no failure but wrote no shared "
      "object\n  command: " +
      text_of(command) + "\n  its output:\n" + first_lines(result.output));
}

}  // namespace fuse
