#include "fusebook/jit/scratch_directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "fusebook/support/file_io.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

namespace fs = std::filesystem;

constexpr time_t stale_seconds = 3600;

// Process numbers are unique only within one boot of one machine and one
// namespace, and several of them may share a directory.
std::string where_pids_count() {
  std::string text;
  const UniqueFd boot(
      open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (boot.valid()) read_exactly(boot.get(), 36, &text);
  struct stat pids = {};
  if (stat("/proc/self/ns/pid", &pids) == 0) {
    text += std::to_string(pids.st_ino);
  }
  return hex_digits(content_hash(text)).substr(8);
}

// "fusebook-<where>-": followed by the process number and six random letters.
std::string local_prefix() { return "fusebook-" + where_pids_count() + "-"; }

bool is_alive(pid_t pid) { return kill(pid, 0) == 0 || errno != ESRCH; }

bool owner_is_gone(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  int pid = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), pid);
  return error == std::errc() && pid > 0 && !is_alive(pid);
}

// fusebook-xxxxxxxx-<pid>-XXXXXX
bool looks_like_scratch(std::string_view name) {
  constexpr std::string_view start = "fusebook-";
  return name.starts_with(start) && name.size() > start.size() + 16 &&
         name[start.size() + 8] == '-' && name[name.size() - 7] == '-';
}

bool is_stale(const fs::path& path, const std::string& prefix) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid()) {
    return false;
  }
  return owner_is_gone(path.filename().native(), prefix) ||
         status.st_mtime < std::time(nullptr) - stale_seconds;
}

// A name in `parent` for a directory about to be removed. mkdtemp never makes a
// name with an underscore, and the process number lets the next run take over.
std::string farewell_name(const std::string& parent) {
  static std::atomic<unsigned> serial = 0;
  std::array<char, 8> letters;
  std::snprintf(letters.data(), letters.size(), "_%05x",
                serial.fetch_add(1) & 0xfffffU);
  return fmt::format("{}/{}{}-{}", parent, local_prefix(), getpid(),
                     letters.data());
}

// A compiler that outlived its process may still create files in the directory,
// which would then never become empty. It knows the directory only by its path:
// after renaming nothing can be added, except by calls already under way.
void remove_scratch(const fs::path& path) {
  constexpr int attempts = 16;
  fs::path last = farewell_name(path.parent_path().native());
  if (std::rename(path.c_str(), last.c_str()) != 0) last = path;
  std::error_code failed;
  for (int i = 0; i < attempts; ++i) {
    fs::remove_all(last, failed);
    if (!failed) return;
  }
}

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  if (first_time("sweep " + parent)) sweep_scratch(parent);
  std::string name =
      fmt::format("{}/{}{}-XXXXXX", parent, local_prefix(), getpid());
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::move(other.path_)) {
  other.path_.clear();
}

ScratchDirectory::~ScratchDirectory() {
  if (!path_.empty()) remove_scratch(path_);
}

ScratchDirectory make_temporary_directory() {
  const char* const variable = std::getenv("TMPDIR");
  if (variable != nullptr && *variable == '/') {
    ScratchDirectory chosen(variable);
    if (!chosen.path().empty()) return chosen;
  }
  ScratchDirectory standard("/tmp");
  if (!standard.path().empty()) return standard;
  throw Error("cannot create a directory for temporary files in /tmp: " +
              errno_text() + "; set TMPDIR to a writable directory");
}

void sweep_scratch(const std::string& parent) {
  const std::string prefix = local_prefix();
  std::error_code ignored;
  fs::directory_iterator entry(parent, ignored);
  for (; !ignored && entry != fs::directory_iterator();
       entry.increment(ignored)) {
    if (looks_like_scratch(entry->path().filename().native()) &&
        is_stale(entry->path(), prefix)) {
      remove_scratch(entry->path());
    }
  }
}

}  // namespace fuse
