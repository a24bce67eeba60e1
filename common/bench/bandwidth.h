#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The memory traffic of an optimizer step with almost no arithmetic: a pass
/// over `reads` float32 tensors of every size, the first `writes` of which are
/// also written, with their old contents; none of them for a pass that only
/// reads. The time of `run` is the machine's limit for any step with this memory
/// access.
///
/// Adam reads the parameter, two averages and the gradient, and writes all but
/// the gradient: 4 and 3, the defaults.
///
/// On a GPU (the default device) it is a copy within its memory that moves as
/// many bytes: the usual bandwidth benchmark.
///
/// A moved-from pattern throws Error naming what was called.
class AccessPattern {
 public:
  /// Where the arrays of a tensor begin: at the allocator's addresses, or each
  /// a different number of cache lines after that.
  enum class Bases {
    allocated,  ///< at the allocator's addresses
    staggered,  ///< so that no two collide in the cache
  };
  /// Bytes per load or store; the compiler splits them if necessary.
  enum class Width {
    bytes32,        ///< 256 bits
    bytes64,        ///< 512 bits
    bytes64_ahead,  ///< the same, asking for every line 2 KiB ahead
  };
  /// All of them.
  static constexpr Width widths[] = {Width::bytes32, Width::bytes64,
                                     Width::bytes64_ahead};

  /// One entry in `sizes` per tensor, in elements. Throws Error for negative
  /// sizes or unless 0 <= writes <= reads and 1 <= reads <= 8.
  explicit AccessPattern(std::vector<std::int64_t> sizes, int reads = 4,
                         int writes = 3, Bases bases = Bases::allocated);
  /// The same over existing tensors in host memory: `arrays[k][i]` is the
  /// `k`-th array of tensor `i`. Throws Error unless they are float32,
  /// contiguous and, for each `i`, of the same size.
  AccessPattern(std::vector<std::vector<Tensor>> arrays, int writes);

  /// One pass over everything, split evenly over all threads of the pool. In
  /// what it writes, flips those of the bits `flips` that are set in an odd
  /// number of the arrays: none by default; tests use it to see what was
  /// visited.
  void run(Width width = Width::bytes32, std::uint32_t flips = 0) const;
  /// Bytes moved by one pass: every read and every write counts once.
  std::int64_t bytes() const;
  /// On the host, the `read`-th array of tensor `index`: zeros unless filled.
  /// With staggered bases it has spare room at its end. Throws Error if it does
  /// not exist.
  const Tensor& array(std::size_t read, std::size_t index) const;

 private:
  struct Sweep;
  void check() const;
  void check_there(
      std::source_location call = std::source_location::current()) const;
  void add_sizes();
  void add_addresses();
  void run_range(const Sweep& sweep, std::int64_t begin,
                 std::int64_t end) const;

  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> starts_;
  std::int64_t total_ = 0;
  int reads_;
  int writes_;
  Bases bases_;
  std::vector<std::vector<Tensor>> arrays_;  // on the host
  std::vector<float*> addresses_;            // those of a tensor are adjacent
  Tensor from_;                              // on a GPU
  Tensor to_;
};

/// The machine's limit for a step: the fastest variant of `AccessPattern`,
/// found by timing all of them in turn.
class TrafficLimit {
 public:
  /// Sizes in elements, one entry per tensor, as for `AccessPattern`.
  explicit TrafficLimit(const std::vector<std::int64_t>& sizes, int reads = 4,
                        int writes = 3);
  /// One pass.
  void run() const;

 private:
  std::shared_ptr<AccessPattern> pattern_;
  AccessPattern::Width width_ = AccessPattern::Width::bytes32;
};

/// Median time of one pass, in microseconds, as measured by
/// `blocked_autorange`.
double bandwidth_limit_us(const std::vector<std::int64_t>& sizes, int reads = 4,
                          int writes = 3, double min_run_time_s = 0.2);

}  // namespace fuse
