#include "fusebook/jit/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "fusebook/jit/cache_directory.h"
#include "fusebook/support/content_hash.h"
#include "fusebook/support/error.h"
#include "fusebook/support/warning.h"

namespace fuse {
namespace {

// An entry consists of the shared object, the key, and this.
struct Trailer {
  std::array<char, 8> magic;
  std::uint64_t object_size;
  std::uint64_t key_size;
  std::uint64_t checksum;  // of everything before it
};
constexpr std::array<char, 8> magic = {'F', 'B', 'K', 'E', 'R', 'N', '0', '1'};
constexpr std::uint64_t entry_size_limit = std::uint64_t(1) << 26;

std::string make_entry(const std::string& key, const std::string& object) {
  Trailer trailer = {magic, object.size(), key.size(), 0};
  std::string entry = object + key;
  entry.append(reinterpret_cast<const char*>(&trailer),
               offsetof(Trailer, checksum));
  const std::uint64_t checksum = content_hash(entry);
  entry.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return entry;
}

// The four checks below return the problem, or an empty string.

std::string file_fault(int fd, struct stat* status) {
  if (fstat(fd, status) != 0) return errno_text();
  if (!S_ISREG(status->st_mode)) return "it is not a regular file";
  if (status->st_uid != geteuid()) return "it belongs to another user";
  if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return "others can write to it";
  }
  return {};
}

std::string content_fault(const std::string& entry, const std::string& key) {
  if (entry.size() < sizeof(Trailer)) return "it is truncated";
  Trailer trailer;
  const std::size_t body = entry.size() - sizeof(trailer);
  std::memcpy(&trailer, entry.data() + body, sizeof(trailer));
  if (trailer.magic != magic) return "it is truncated, or not a kernel";
  if (trailer.object_size > body ||
      trailer.key_size != body - trailer.object_size) {
    return "its lengths do not match";
  }
  const std::string_view all(entry);
  if (content_hash(all.substr(0, entry.size() - sizeof(trailer.checksum))) !=
      trailer.checksum) {
    return "its checksum does not match";
  }
  if (all.substr(trailer.object_size, trailer.key_size) != key) {
    return "it belongs to another kernel";
  }
  return {};
}

std::string why_not_opened() {
  return errno == ELOOP ? "it is a symbolic link" : errno_text();
}

std::string read_entry(const UniqueFd& file, const std::string& key,
                       std::string* entry) {
  if (!file.valid()) return why_not_opened();
  struct stat status = {};
  if (auto fault = file_fault(file.get(), &status); !fault.empty()) {
    return fault;
  }
  if (std::uint64_t(status.st_size) > entry_size_limit) {
    return "it is too large";
  }
  if (!read_exactly(file.get(), std::size_t(status.st_size), entry)) {
    return errno == 0 ? "it is truncated" : errno_text();
  }
  return content_fault(*entry, key);
}

bool is_entry_name(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  return name.size() == 20 && name.substr(16) == ".fbk" &&
         name.substr(0, 16).find_first_not_of(digits) == name.npos;
}

// Calls `visit(name, status)` for every entry of the directory.
template <class Visit>
void for_each_entry(int directory, Visit visit) {
  DIR* const listing = fdopendir(fcntl(directory, F_DUPFD_CLOEXEC, 0));
  if (listing == nullptr) return;
  rewinddir(listing);
  while (const dirent* const entry = readdir(listing)) {
    struct stat status = {};
    if (is_entry_name(entry->d_name) &&
        fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      visit(entry->d_name, status);
    }
  }
  closedir(listing);
}

void warn_not_kept(const std::string& why) {
  warn_once("kernels are not kept for the next run: " + why +
            ". Set FUSEBOOK_CACHE_DIR to a directory of your own, or to 'off'");
}

// A run that finds every kernel makes no scratch directory, which would trigger
// a sweep. A link count of two means that the directory has no subdirectories,
// so the usual case costs one system call; file systems that do not count
// report one.
void sweep_if_needed(const std::string& path, int directory) {
  struct stat status = {};
  if (fstat(directory, &status) != 0 || status.st_nlink == 2) return;
  if (first_time("sweep " + path)) sweep_scratch(path);
}

}  // namespace

std::string entry_name(const std::string& key) {
  return hex_digits(content_hash(key)) + ".fbk";
}

KernelCache KernelCache::open() {
  KernelCache cache(cache_path());
  if (cache.path_.empty()) {
    if (std::getenv("FUSEBOOK_CACHE_DIR") == nullptr) {
      warn_not_kept("neither XDG_CACHE_HOME nor HOME names a directory");
    }
    return cache;
  }
  std::string problem;
  cache.directory_ = open_cache_directory(cache.path_, true, &problem);
  if (!problem.empty()) cache.warn_unusable(problem);
  if (cache.usable()) sweep_if_needed(cache.path_, cache.directory_.get());
  return cache;
}

void KernelCache::warn_unusable(const std::string& problem) const {
  warn_not_kept("the cache directory '" + path_ + "' " + problem);
}

ScratchDirectory KernelCache::make_scratch() const {
  if (!usable()) return {};
  ScratchDirectory scratch(path_);
  if (scratch.path().empty()) {
    warn_unusable("cannot be written: " + errno_text());
  }
  return scratch;
}

std::optional<std::string> KernelCache::load(const std::string& key) const {
  if (!usable()) return std::nullopt;
  const std::string name = entry_name(key);
  // O_NONBLOCK: opening a named pipe must not block.
  const UniqueFd file(
      openat(directory_.get(), name.c_str(),
             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return std::nullopt;
  std::string entry;
  const std::string fault = read_entry(file, key, &entry);
  if (!fault.empty()) {
    warn("the cached kernel '" + path_ + "/" + name + "' cannot be used (" +
         fault + "); compiling it again");
    return std::nullopt;
  }
  entry.resize(entry.size() - sizeof(Trailer) - key.size());
  return entry;
}

void KernelCache::store(const std::string& key, const std::string& object,
                        const std::string& scratch) const {
  if (!usable()) return;
  const std::string written = scratch + "/entry";
  const std::string name = entry_name(key);
  if (write_new_file(written, make_entry(key, object)) &&
      renameat(AT_FDCWD, written.c_str(), directory_.get(), name.c_str()) ==
          0) {
    return;
  }
  const std::string problem = "cannot be written: " + errno_text();
  unlink(written.c_str());
  warn_unusable(problem);
}

CacheSummary summarize_disk_cache() {
  CacheSummary summary;
  summary.directory = cache_path();
  if (summary.directory.empty()) return summary;
  const UniqueFd directory =
      open_cache_directory(summary.directory, false, &summary.problem);
  if (!directory.valid()) return summary;
  for_each_entry(directory.get(), [&](const char*, const struct stat& status) {
    ++summary.entries;
    summary.bytes += status.st_size;
  });
  return summary;
}

long clear_disk_cache() {
  const std::string path = cache_path();
  if (path.empty()) return 0;
  std::string problem;
  const UniqueFd directory = open_cache_directory(path, false, &problem);
  if (!problem.empty()) {
    throw Error("cannot clear the kernel cache: the directory '" + path + "' " +
                problem);
  }
  if (!directory.valid()) return 0;
  long removed = 0;
  for_each_entry(directory.get(), [&](const char* name, const struct stat&) {
    if (unlinkat(directory.get(), name, 0) == 0) ++removed;
  });
  sweep_scratch(path);
  return removed;
}

}  // namespace fuse
