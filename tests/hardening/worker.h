// Runs the program `hardening_worker` in the surroundings that a test wants:
// another folder, user, environment or file system.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/jit_testing.h"

namespace hardening {

using namespace jit_testing;

/// The full set of cases, instead of the quick one of an ordinary test run.
inline bool nightly() { return std::getenv("FUSEBOOK_NIGHTLY") != nullptr; }

/// One of two sizes of a test.
inline int sized(int ordinary, int full) { return nightly() ? full : ordinary; }

/// The same, where only a sanitizer makes the full size too slow.
inline int sized_for_sanitizers(int sanitized, int full) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static_cast<void>(full);
  return sanitized;
#else
  static_cast<void>(sanitized);
  return full;
#endif
}

inline bool is_root() { return geteuid() == 0; }

/// Some user that is not this one.
constexpr uid_t other_user = 12345;

/// The answer of a child that could not make the surroundings it needs.
constexpr int not_possible_here = 77;

/// How a program ended (its exit code, or minus a signal), and what it wrote.
struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

struct Surroundings {
  /// Variables to set, or (without a value) to remove.
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;
  /// The current directory; empty: this one.
  std::string folder;
  /// The user that the program runs as; 0: this one. Only root can change it.
  uid_t user = 0;
  /// Called in the child before it gives up its rights; false: not possible.
  std::function<bool()> prepare;
  /// A program that takes longer hangs: SIGALRM ends it.
  unsigned seconds = 120;
};

/// A file system of its own for this process and its children. False where
/// that is not allowed.
inline bool leave_file_systems() {
  const std::string user = std::to_string(geteuid());
  const std::string group = std::to_string(getegid());
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    write_text("/proc/self/uid_map", "0 " + user + " 1\n");
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/gid_map", "0 " + group + " 1\n");
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// Puts a new file system in memory over `folder`.
inline bool mount_memory(const std::string& folder, const std::string& options,
                         unsigned long flags = 0) {
  return mount("none", folder.c_str(), "tmpfs", flags, options.c_str()) == 0;
}

/// Whether this system lets a process have file systems of its own.
inline bool can_mount() {
  const TempDir dir;
  return run_child([&] {
           return leave_file_systems() &&
                          mount_memory(dir.path(), "size=64k") &&
                          fs::create_directory(dir / "folder")
                      ? 0
                      : not_possible_here;
         }) == 0;
}

/// What would be lost by asking for the path: a program in a folder that the
/// other user cannot reach.
inline void start_program(int program, std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  fexecve(program, argv.data(), environ);
}

inline int enter(const Surroundings& around) {
  if (around.prepare && !around.prepare()) return not_possible_here;
  for (const auto& [name, value] : around.variables) {
    if (value) {
      setenv(name.c_str(), value->c_str(), 1);
    } else {
      unsetenv(name.c_str());
    }
  }
  if (!around.folder.empty() && chdir(around.folder.c_str()) != 0) return 96;
  if (around.user == 0) return 0;
  const bool done = setgroups(0, nullptr) == 0 && setgid(around.user) == 0 &&
                    setuid(around.user) == 0;
  return done ? 0 : not_possible_here;
}

/// Starts `words[0]` with what it writes going into the files `out`, `err`.
inline pid_t start_in(const Surroundings& around,
                      const std::vector<std::string>& words,
                      const std::string& out, const std::string& err) {
  const int program = open(words[0].c_str(), O_RDONLY);
  const pid_t child = start_child([&] {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    dup2(open(out.c_str(), flags, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), flags, 0600), STDERR_FILENO);
    if (const int code = enter(around); code != 0) return code;
    alarm(around.seconds);
    start_program(program, words);
    return 97;
  });
  close(program);
  return child;
}

inline Outcome run_in(const Surroundings& around,
                      const std::vector<std::string>& words) {
  const TempDir dir;
  const pid_t child = start_in(around, words, dir / "out", dir / "err");
  Outcome outcome;
  outcome.code = wait_for(child);
  outcome.out = read_text(dir / "out");
  outcome.err = read_text(dir / "err");
  return outcome;
}

/// The program of worker.cpp.
inline std::string worker_path() { return HARDENING_WORKER; }

inline Outcome run_worker(const Surroundings& around,
                          std::vector<std::string> words) {
  words.insert(words.begin(), worker_path());
  return run_in(around, words);
}

/// The number after "`name`=" in what a worker wrote; -1: none.
inline long number_in(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + "=");
  if (at == text.npos) return -1;
  return std::stol(text.substr(at + name.size() + 1));
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// How many warnings a program wrote; -1 when it wrote anything else.
inline long warnings_in(const std::string& text) {
  const std::size_t warnings = count_of(text, "fusebook: warning: ");
  return warnings == count_of(text, "\n") ? long(warnings) : -1;
}

/// The files in `folder` that are no entries of a cache.
inline std::vector<std::string> strangers_in(const std::string& folder) {
  std::vector<std::string> strangers;
  for (const std::string& name : names_in(folder)) {
    if (!name.ends_with(".fbk")) strangers.push_back(name);
  }
  return strangers;
}

}  // namespace hardening
