#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "fusebook/tensor/tensor.h"

namespace fuse {

/// The memory traffic of an optimizer step with next to no arithmetic: a pass
/// over `reads` float32 tensors of every size, of which the first `writes` are
/// written as well, with what they hold already. How long `run` takes is the
/// limit the machine sets for any step that touches memory in this way.
///
/// Adam reads parameter, two averages and gradient, and writes all but the
/// gradient: 4 and 3, the defaults.
///
/// On a GPU (the default device) it is a copy within its memory that moves as
/// many bytes: what such devices are measured by.
///
/// One that was moved from throws Error, which names what was called.
class AccessPattern {
 public:
  /// Where the arrays of a tensor begin: wherever the allocator puts them, or
  /// each a different number of cache lines behind that.
  enum class Bases {
    allocated,  ///< where the allocator puts them
    staggered,  ///< so that no two meet in the cache
  };
  /// Bytes a load or store has; the compiler splits them where it must.
  enum class Width {
    bytes32,  ///< 256 bits
    bytes64,  ///< 512 bits
  };

  /// One entry in `sizes` a tensor, in elements. Throws Error for negative
  /// sizes or unless 1 <= writes <= reads <= 8.
  explicit AccessPattern(std::vector<std::int64_t> sizes, int reads = 4,
                         int writes = 3, Bases bases = Bases::allocated);
  /// The same over tensors that are there, in host memory: `arrays[k][i]` is the
  /// `k`-th array of tensor `i`. Throws Error unless they are float32, contiguous
  /// and, for each `i`, of one size.
  AccessPattern(std::vector<std::vector<Tensor>> arrays, int writes);

  /// One pass over everything, on all threads of the pool, split evenly. Flips
  /// those of the bits `flips` in what it writes that an odd number of the arrays
  /// has set: none, unless a test wants to see where it was.
  void run(Width width = Width::bytes32, std::uint32_t flips = 0) const;
  /// Bytes one pass moves: every read and every write counted once.
  std::int64_t bytes() const;
  /// On the host, the `read`-th array of tensor `index`: zeros, unless someone
  /// fills it. Where bases are staggered it has room for that at its end.
  /// Throws Error where there is none.
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
  std::vector<float*> addresses_;            // all of a tensor side by side
  Tensor from_;                              // on a GPU
  Tensor to_;
};

/// The limit of the machine for a step: the fastest of the ways in which an
/// `AccessPattern` passes over its arrays, found by timing them in turns.
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

/// Median time of one pass, in microseconds, as `blocked_autorange` takes it.
double bandwidth_limit_us(const std::vector<std::int64_t>& sizes, int reads = 4,
                          int writes = 3, double min_run_time_s = 0.2);

}  // namespace fuse
