#include "fusebook/jit/host_compiler.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <utility>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr const char* how_to_fix =
    "Install a C++ compiler (Debian, Ubuntu: apt-get install g++), or set "
    "FUSEBOOK_CXX to one";

bool is_executable(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string search_path() {
  const char* const path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
}

// A word, followed by the identity of the file behind it.
std::string describe_program(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return path;
  char* const resolved = realpath(path.c_str(), nullptr);
  std::string text = path + " -> " + (resolved != nullptr ? resolved : "?");
  std::free(resolved);
  return fmt::format("{} size {} changed {}.{} inode {} device {}", text,
                     status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec, status.st_ino, status.st_dev);
}

std::string describe_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool option = word.empty() || word[0] == '-';
    const std::string program = option ? std::string() : find_program(word);
    text += "  " + (program.empty() ? word : describe_program(program)) + "\n";
  }
  return text;
}

HostCompiler make_compiler(std::vector<std::string> words) {
  std::string identity = describe_words(words);
  return {std::move(words), std::move(identity)};
}

[[noreturn]] void throw_missing(const std::string& variable,
                                const std::string& value,
                                const std::string& program) {
  std::string why = "that file does not exist";
  struct stat status = {};
  if (program.find('/') == std::string::npos) {
    why = "no such program is in PATH (" + search_path() + ")";
  } else if (stat(program.c_str(), &status) == 0) {
    why = "that file is not executable";
  }
  throw NoCompiler(fmt::format("no host compiler: {} is '{}', but {}. {}",
                               variable, value, why, how_to_fix));
}

HostCompiler compiler_from(const std::string& variable,
                           const std::string& value) {
  if (auto whole = find_program(value); !whole.empty()) {
    return make_compiler({std::move(whole)});
  }
  std::vector<std::string> words = split_words(value, variable);
  std::string program = find_program(words[0]);
  if (program.empty()) throw_missing(variable, value, words[0]);
  words[0] = std::move(program);
  return make_compiler(std::move(words));
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

bool is_set(const char* value) {
  for (; value != nullptr && *value != '\0'; ++value) {
    if (!is_blank(*value)) return true;
  }
  return false;
}

// Processes the text in one pass: `quote_` is the open quotation mark, or 0.
class WordSplitter {
 public:
  std::vector<std::string> split(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool more = i + 1 < text.size();
      if (text[i] == '\\' && quote_ != '\'' && more) {
        add(text[++i]);
      } else {
        take(text[i]);
      }
    }
    end_word();
    return std::move(words_);
  }
  char open_quote() const { return quote_; }

 private:
  void take(char c) {
    if (quote_ != 0) {
      c == quote_ ? void(quote_ = 0) : add(c);
    } else if (c == '\'' || c == '"') {
      quote_ = c;
      in_word_ = true;
    } else if (is_blank(c)) {
      end_word();
    } else {
      add(c);
    }
  }
  void add(char c) {
    word_ += c;
    in_word_ = true;
  }
  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  std::vector<std::string> words_;
  std::string word_;
  bool in_word_ = false;
  char quote_ = 0;
};

}  // namespace

std::vector<std::string> split_words(std::string_view text,
                                     const std::string& variable) {
  WordSplitter splitter;
  std::vector<std::string> words = splitter.split(text);
  if (splitter.open_quote() != 0) {
    throw UsageError(variable + " is '" + std::string(text) +
                     "', in which a quotation mark (" + splitter.open_quote() +
                     ") is not closed");
  }
  if (words.empty() || words[0].empty()) {
    throw UsageError(variable + " is '" + std::string(text) +
                     "', which does not name a program");
  }
  return words;
}

std::string find_program(const std::string& name) {
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) {
    return is_executable(name) ? name : std::string();
  }
  const std::string path = search_path();
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t colon = path.find(':', begin);
    const std::size_t end = colon == path.npos ? path.size() : colon;
    std::string folder = path.substr(begin, end - begin);
    if (folder.empty()) folder = ".";
    std::string candidate = folder + "/" + name;
    if (is_executable(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

HostCompiler find_host_compiler() {
  for (const char* const variable : {"FUSEBOOK_CXX", "CXX"}) {
    const char* const value = std::getenv(variable);
    if (is_set(value)) return compiler_from(variable, value);
  }
  for (const char* const name : {"c++", "g++", "clang++"}) {
    if (auto path = find_program(name); !path.empty()) {
      return make_compiler({std::move(path)});
    }
  }
  throw NoCompiler(
      "no host compiler: none of c++, g++ and clang++ is in PATH (" +
      search_path() + "). " + how_to_fix);
}

}  // namespace fuse
