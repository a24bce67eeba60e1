#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fusebook/checkpoint/run_contents.h"
#include "fusebook/checkpoint/safetensors_layout.h"
#include "fusebook/distributed/sharded_optimizer.h"
#include "fusebook/support/output_file.h"

namespace fuse {

/// The file of a run that several ranks write: which of them writes what, and
/// where. It is the same on all ranks; only this one's tensors are at hand.
class RunFile {
 public:
  /// Name, dtype and shape of each state of this rank's shares, for the others.
  static std::string describe(const ShardedOptimizer& sharded);
  /// `described` is that of each rank.
  RunFile(const std::string& path, ShardedOptimizer& sharded,
          const std::vector<const SchedulerBase*>& schedulers,
          const std::vector<std::string>& described);

  /// Writes the bytes of this rank, a tensor at a time.
  void write_own(FilePieces& file) const;
  /// The hash of the last entry, on rank 0: a call that all ranks make. Each
  /// hashes its bytes, in the order of the file, and hands the hash on to the one
  /// that has the next.
  std::uint64_t hash(Ranks& ranks) const;
  /// The beginning of the file, which rank 0 writes.
  std::string head(std::uint64_t last_hash) const {
    return layout_.head(last_hash);
  }

 private:
  // What a rank has of a tensor; others do not have it here.
  struct Source {
    int owner = 0;
    std::size_t first = 0;  // of its elements
    Tensor here;
  };
  // What the file has of it.
  struct Piece {
    std::size_t entry = 0;
    int owner = 0;
    std::size_t begin = 0;  // in the file
    Tensor here;
  };
  struct Contents;

  RunFile(const std::string& path, int rank, const Contents& contents);
  static Contents contents_of(
      ShardedOptimizer& sharded,
      const std::vector<const SchedulerBase*>& schedulers,
      const std::vector<std::string>& described);

  int rank_;
  SafetensorsLayout layout_;
  std::vector<Piece> pieces_;  // in the order of the file
};

}  // namespace fuse
