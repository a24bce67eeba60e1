#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fuse {

/// A kernel compiled ahead: its key, and what was compiled.
struct PackedKernel {
  std::string key;
  std::string object;
};

/// The key of a kernel in a pack: everything that its code depends on but the
/// compiler, which the machine that loads it need not have. `target` says where
/// it runs: "cpu x86-64-v3", or "gpu sm_90, CUDA 13".
std::string pack_key(std::string_view target,
                     const std::vector<std::string>& flags,
                     std::string_view source);

/// The bytes of a file that holds these kernels.
std::string pack_file(const std::vector<PackedKernel>& kernels);

/// A file of kernels compiled ahead, in memory.
class PackFile {
 public:
  /// Reads the file. What it holds is code, so it must be a regular file, no
  /// link, of this user or root, that nobody else can write, in a folder of
  /// which the same is true. On failure it has no kernels and `problem` says
  /// why: "is truncated".
  static PackFile read(const std::string& path, std::string* problem);

  /// What was compiled under exactly this key. Its `data()` is null if there is
  /// none.
  std::string_view find(std::string_view key) const;

  /// The targets of its kernels, each once.
  const std::vector<std::string>& targets() const { return targets_; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::string take(std::string bytes);

  // Where key and object of an entry begin and end in the bytes.
  struct Entry {
    std::size_t key;
    std::size_t object;
    std::size_t end;
  };
  std::string bytes_;
  std::unordered_multimap<std::uint64_t, Entry> entries_;
  std::vector<std::string> targets_;
};

}  // namespace fuse
