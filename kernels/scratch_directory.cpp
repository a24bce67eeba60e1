#include "scratch_directory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "content_hash.h"
#include "error.h"
#include "file_io.h"
#include "warning.h"

namespace fuse {
namespace {

namespace fs = std::filesystem;

constexpr time_t stale_seconds = 3600;

// Process numbers mean something only within one boot of one machine and one
// namespace, and a directory may be shared between several of them.
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

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& parent) {
  if (first_time("sweep " + parent)) sweep_scratch(parent);
  std::string name =
      parent + "/" + local_prefix() + std::to_string(getpid()) + "-XXXXXX";
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::move(other.path_)) {
  other.path_.clear();
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

ScratchDirectory make_temporary_directory() {
  const char* const variable = std::getenv("TMPDIR");
  if (variable != nullptr && *variable == '/') {
    ScratchDirectory chosen(variable);
    if (!chosen.path().empty()) return chosen;
  }
  ScratchDirectory standard("/tmp");
  if (!standard.path().empty()) return standard;
  throw Error("cannot make a directory for temporary files in /tmp: " +
              errno_text() + ": set TMPDIR to a directory that can be written");
}

void sweep_scratch(const std::string& parent) {
  const std::string prefix = local_prefix();
  std::error_code ignored;
  fs::directory_iterator entry(parent, ignored);
  for (; !ignored && entry != fs::directory_iterator();
       entry.increment(ignored)) {
    if (!looks_like_scratch(entry->path().filename().native())) continue;
    std::error_code also_ignored;
    if (is_stale(entry->path(), prefix)) {
      fs::remove_all(entry->path(), also_ignored);
    }
  }
}

}  // namespace fuse
