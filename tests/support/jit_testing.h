// What the tests of the run-time compiler share: throw-away folders, changed
// environments, forked children, and compilers made of a few lines of shell.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace jit_testing {

namespace fs = std::filesystem;

/// A folder of its own, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string name = fs::temp_directory_path() / "jit-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Sets (or, for nullptr, removes) a variable, and puts it back at the end.
class Env {
 public:
  Env(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) {
      old_ = old;
      was_set_ = true;
    }
    set(value);
  }
  Env(const char* name, const std::string& value) : Env(name, value.c_str()) {}
  ~Env() { set(was_set_ ? old_.c_str() : nullptr); }
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

/// Calls use() where kernels get the registers of this machine, and where they get
/// those that have 8 lanes.
template <class Use>
void with_all_registers(Use use) {
  use();
#if defined(__x86_64__)
  const Env narrow("FUSEBOOK_CXX", "c++ -U__AVX512F__");
  use();
#endif
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// An executable shell script.
inline void write_script(const std::string& path, const std::string& body) {
  write_text(path, "#!/bin/sh\n" + body);
  chmod(path.c_str(), 0755);
}

/// What is written to standard error until `stop()`.
class CapturedStderr {
 public:
  CapturedStderr() : file_(std::tmpfile()), old_(dup(STDERR_FILENO)) {
    std::fflush(stderr);
    dup2(fileno(file_), STDERR_FILENO);
  }
  ~CapturedStderr() { stop(); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string stop() {
    if (file_ == nullptr) return text_;
    std::fflush(stderr);
    dup2(old_, STDERR_FILENO);
    close(old_);
    std::fseek(file_, 0, SEEK_SET);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      text_ += char(c);
    }
    std::fclose(file_);
    file_ = nullptr;
    return text_;
  }

 private:
  std::FILE* file_;
  int old_;
  std::string text_;
};

/// Starts a child that runs `body` and leaves with its result.
template <class Body>
pid_t start_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = body();
  } catch (...) {
    code = 98;
  }
  std::fflush(nullptr);
  _exit(code);
}

/// The exit code of a child, or minus the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <class Body>
int run_child(Body body) {
  return wait_for(start_child(body));
}

inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

/// A kernel whose `answer()` returns `value`.
inline std::string answer_source(int value) {
  return "extern \"C\" __attribute__((visibility(\"default\")))\n"
         "int answer() { return " +
         std::to_string(value) + "; }\n";
}

}  // namespace jit_testing
