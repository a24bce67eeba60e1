#pragma once

#include <optional>
#include <string>

#include "fusebook/jit/scratch_directory.h"
#include "fusebook/support/file_io.h"

namespace fuse {

/// The disk cache of compiled kernels: one file per entry, which contains the
/// shared object, the complete text of its key, and a checksum over both. A
/// fault of the cache causes at most a warning: the kernel is then compiled
/// again.
class KernelCache {
 public:
  /// Opens the user's cache, creating its directory if necessary. Warns once
  /// per process if that fails.
  static KernelCache open();

  /// False if kernels are not kept on disk.
  bool usable() const { return directory_.valid(); }

  /// The directory; empty if the cache is switched off.
  const std::string& path() const { return path_; }

  /// The shared object stored under exactly this key. Warns and returns nothing
  /// if the entry cannot be trusted (another owner, truncated, changed, or of
  /// another key).
  std::optional<std::string> load(const std::string& key) const;

  /// A private directory inside the cache for compiling; if the cache is not
  /// writable, warns and returns one with an empty path.
  ScratchDirectory make_scratch() const;

  /// Warns, once per process, that the cache directory has this `problem`.
  void warn_unusable(const std::string& problem) const;

  /// Stores `object` under `key` for later runs, replacing any old entry. The
  /// entry is written to `scratch`, a directory from `make_scratch`, and then
  /// renamed into place.
  void store(const std::string& key, const std::string& object,
             const std::string& scratch) const;

 private:
  explicit KernelCache(std::string path) : path_(std::move(path)) {}

  std::string path_;
  UniqueFd directory_;
};

/// The state of the disk cache; reading it creates nothing.
struct CacheSummary {
  /// Empty if the cache is switched off.
  std::string directory;
  /// Why it cannot be used; empty if it can, or does not exist yet.
  std::string problem;
  long entries = 0;
  long long bytes = 0;
};
CacheSummary summarize_disk_cache();

/// Removes every entry, and leftovers of interrupted processes. Returns the
/// number of entries removed. Throws Error if the directory cannot be used.
long clear_disk_cache();

/// The name of the file that holds the entry of `key`.
std::string entry_name(const std::string& key);

}  // namespace fuse
