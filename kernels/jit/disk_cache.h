#pragma once

#include <optional>
#include <string>

#include "fusebook/jit/scratch_directory.h"
#include "fusebook/support/file_io.h"

namespace fuse {

/// The disk cache of compiled kernels: one file an entry, which holds the
/// shared object, the whole text of its key, and a checksum over both. Every
/// fault of the cache is a warning at most: the kernel is then compiled anew.
class KernelCache {
 public:
  /// Opens the user's cache, making its directory if need be. Warns once in a
  /// process when there should be one and cannot.
  static KernelCache open();

  /// False when kernels are not kept on disk.
  bool usable() const { return directory_.valid(); }

  /// The directory; empty when the cache is switched off.
  const std::string& path() const { return path_; }

  /// The shared object stored under exactly this key. An entry that cannot be
  /// trusted (another owner, truncated, changed, of another key) gives a
  /// warning and nothing.
  std::optional<std::string> load(const std::string& key) const;

  /// A private directory inside the cache to compile in; its path is empty, and
  /// there was a warning, when the cache cannot be written.
  ScratchDirectory make_scratch() const;

  /// Warns, once in a process, that the cache directory has this `problem`.
  void warn_unusable(const std::string& problem) const;

  /// Stores `object` under `key` for later runs, replacing what was there.
  /// `scratch`, a directory from `make_scratch`, is where the entry is written
  /// before it appears whole under its name.
  void store(const std::string& key, const std::string& object,
             const std::string& scratch) const;

 private:
  explicit KernelCache(std::string path) : path_(std::move(path)) {}

  std::string path_;
  UniqueFd directory_;
};

/// What a look at the disk cache finds; it creates nothing.
struct CacheSummary {
  /// Empty when the cache is switched off.
  std::string directory;
  /// Why it cannot be used; empty when it can, or is merely not there yet.
  std::string problem;
  long entries = 0;
  long long bytes = 0;
};
CacheSummary summarize_disk_cache();

/// Removes every entry, and what interrupted processes left. Returns the number
/// of entries removed. Throws Error when the directory cannot be used.
long clear_disk_cache();

/// The name of the file that holds the entry of `key`.
std::string entry_name(const std::string& key);

}  // namespace fuse
